// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/runtime/grid.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace trireme::device::cuda {

class CudaDevice;

/// Starts kernels on one stream of the current GPU, and lends them memory. What it is made of
/// is hidden: CUDA's compiler, which reads this, cannot read everything that the host's does.
class Launcher : public LauncherBase {
 public:
  explicit Launcher(CudaDevice& device);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int multiprocessors() const { return multiprocessors_; }
  /// Begins an operation: former workspaces may be handed out again. Work on one stream, in order,
  /// may share them.
  void reset();

  template <typename... Parameters>
  void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid,
              std::type_identity_t<Parameters>... arguments) {
    void* addresses[] = {&arguments...};
    start(name, simt::kernel_address(kernel), grid, addresses);
  }

  /// Memory for `count` elements until reset(), at a multiple of 256 bytes.
  template <typename T>
  simt::Global<T> workspace(std::int64_t count) {
    return simt::Global<T>(static_cast<T*>(take(static_cast<std::size_t>(count) * sizeof(T))));
  }
  void* take(std::size_t bytes);
  /// Bytes of all memory that it has taken so far.
  std::size_t workspace_bytes() const;
  /// Waits for the stream.
  template <typename T>
  double read_back(const simt::Global<T>& result) {
    return read(result.host());
  }
  /// Place on the GPU in which an operation leaves a number until read_answers().
  template <typename T = double>
  simt::Global<T> next_answer() {
    return simt::Global<T>(take_answer());
  }
  /// Numbers in the order of next_answer(); waits for the stream, once.
  std::vector<double> read_answers();

 private:
  void start(const char* name, const void* kernel, const Grid& grid, void** arguments);
  double read(const double* result);
  double* take_answer();

  struct Parts;
  std::unique_ptr<Parts> parts_;
  int multiprocessors_ = 0;
};

}  // namespace trireme::device::cuda
