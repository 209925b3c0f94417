// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"
#include "trireme/device/tensor.hpp"

#include "device/cpu/gemm/block_gemm.hpp"
#include "device/cpu/runtime/team.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace trireme::device::cpu {

/// The three GEMMs of a linear layer. The result is cut into tiles, which threads take in turn.
/// The bits of a result depend on the tiles: two runs on as many threads are equal, and with
/// Tiling::by_shape any two. Arguments are those of the operations, the gradient of the bias apart;
/// rows of any operand may lie in wider matrices.
class LinearGemm {
 public:
  LinearGemm(std::shared_ptr<Team> team, Bf16Gemm bf16, Tiling tiling);

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx);
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw);

  /// Memory for packed operands, outside of any arena.
  std::size_t workspace_bytes() const;

 private:
  void multiply(const BlockDescriptor& whole, const BlockOperands& operands);

  std::shared_ptr<Team> team_;
  std::vector<BlockGemm> threads_;
  /// Divisor of the number of tiles of a GEMM.
  std::int64_t together_;
};

}  // namespace trireme::device::cpu
