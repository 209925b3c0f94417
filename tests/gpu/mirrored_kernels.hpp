// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/runtime/stream.hpp"
#include "support/device/operand_kernels.hpp"

#include <memory>

namespace trireme::device::test {

/// Kernels of a GPU for tests whose tensors lie in host memory: each operation's operands, and the
/// memory between their rows, are copied to the GPU before it, and those that it may write back
/// after it.
class MirroredKernels final : public OperandKernels {
 public:
  explicit MirroredKernels(std::unique_ptr<Kernels> inner) : inner_(std::move(inner)) {}

  const char* name() const override { return inner_->name(); }
  void synchronize() override { inner_->synchronize(); }

 private:
  void run(const char* operation, std::span<const Operand> operands, const Body& body) override;

  void transfer(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

  std::unique_ptr<Kernels> inner_;
  cuda::Stream copies_ = cuda::Stream::make();
};

/// Those of the first GPU; ends the program's tests where there is none.
std::shared_ptr<Kernels> mirrored_on_gpu(const AttentionChoice& attention);

}  // namespace trireme::device::test
