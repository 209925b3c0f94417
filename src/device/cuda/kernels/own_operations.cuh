// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/own_operations.hpp"

namespace trireme::device::cuda {

template <typename L, typename List>
void OwnOperations<L, List>::issue(L& launcher, typename List::Pointer operation) {
  std::visit([&launcher](const auto* one) { run(launcher, *one); }, operation);
}

}  // namespace trireme::device::cuda
