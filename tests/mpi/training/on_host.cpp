// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/training.hpp"

namespace trireme::testing {

std::unique_ptr<device::Kernels> kernels_under_test() {
  return device::make_reference_kernels();
}

}  // namespace trireme::testing
