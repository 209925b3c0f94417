// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <cstdio>

namespace trireme::testing {

std::unique_ptr<device::Kernels> kernels_under_test() {
  // Runs are compared bit by bit.
  auto kernels = device::make_cuda_kernels(0, {.bits = device::AttentionBits::repeatable});
  if (kernels.ok()) return std::move(kernels).value();
  if (mpi().world_rank().value() == 0) {
    std::printf("TRIREME_SKIP: %s\n", kernels.failure().text.c_str());
  }
  return nullptr;
}

}  // namespace trireme::testing
