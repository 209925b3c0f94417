// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "support/simt/executor.hpp"

#include <cstdint>
#include <type_traits>

namespace trireme::device::simt {

/// Launcher as device::cuda::Launcher on a GPU: starts kernels, here on an executor.
class HostLauncher : public cuda::LauncherBase {
 public:
  HostLauncher(Executor& executor, Memory& memory) : executor_(executor), memory_(memory) {
    executor_.use(memory_);
  }

  /// Few, so that grids step through their work.
  int multiprocessors() const { return 1; }

  template <typename... Parameters>
  void launch(const char* name, void (*kernel)(Parameters...), const cuda::Grid& grid,
              const std::type_identity_t<Parameters>&... arguments) {
    executor_.launch(name, grid.blocks, grid.threads, [&] { kernel(arguments...); });
  }

  template <typename T>
  Global<T> workspace(std::int64_t count) {
    return Global<T>(
        static_cast<T*>(memory_.workspace(sizeof(T), static_cast<std::size_t>(count))));
  }
  static double read_back(const Global<double>& result) { return *result.host(); }

 private:
  Executor& executor_;
  Memory& memory_;
};

}  // namespace trireme::device::simt
