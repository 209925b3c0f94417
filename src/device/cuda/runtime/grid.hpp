// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::device::simt {

template <typename T>
class Global;
/// Address that stands for a kernel where no type can be told.
template <typename... Parameters>
const void* kernel_address(void (*kernel)(Parameters...));

}  // namespace trireme::device::simt

namespace trireme::device::cuda {

/// Blocks of so many threads each.
struct Grid {
  std::int64_t blocks = 0;
  int threads = 0;
};

/// Base of what starts kernels: on a stream of a GPU (device/cuda/runtime/launcher.hpp), or on the
/// tests' executor. Argument-dependent lookup finds the operations of this namespace by it.
struct LauncherBase {};

}  // namespace trireme::device::cuda
