// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace trireme::testing {

/// A kernel that writes 0, 1 … count - 1 to memory, one number a thread, with the arguments for its
/// launch.
void with_count_up(float* memory, int count,
                   const std::function<void(const void* kernel, void** arguments)>& launch);

}  // namespace trireme::testing
