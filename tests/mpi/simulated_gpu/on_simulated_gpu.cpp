// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"

namespace trireme::testing {

std::unique_ptr<device::Kernels> kernels_under_test() {
  const Haste haste{Haste::Kind::mixed, static_cast<std::uint64_t>(mpi().world_rank().value())};
  return std::make_unique<SimulatedKernels>(device::make_reference_kernels(), haste);
}

}  // namespace trireme::testing
