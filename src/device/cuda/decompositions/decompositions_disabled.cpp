// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/decompositions/decompositions.hpp"

/// Decompositions of a build whose CUDA toolkit has no cuSOLVER.
namespace trireme::device::cuda {

base::Result<std::unique_ptr<Decompositions>> open_decompositions(CudaDevice&) {
  return base::Failure{
      base::ExitCode::topology,
      "optimizer.name = shampoo and soap need cuSOLVER on GPUs, which is not in this build (its "
      "CUDA toolkit has no cusolverDn.h); install the toolkit's cuSOLVER and configure anew, or "
      "set optimizer.name = muon or numerics.backend = cpu"};
}

}  // namespace trireme::device::cuda
