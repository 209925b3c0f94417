// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/training.hpp"
#include "support/detached/device.hpp"
#include "support/mpi/world.hpp"

namespace trireme::testing {

std::unique_ptr<device::Kernels> kernels_under_test() {
  const Haste haste{Haste::Kind::mixed, static_cast<std::uint64_t>(mpi().world_rank().value())};
  return std::make_unique<DetachedKernels>(device::make_reference_kernels(), haste);
}

}  // namespace trireme::testing
