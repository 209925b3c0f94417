// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/weights.hpp"
#include "norm.hpp"

namespace trireme::layers {

/// The last norm, the projection to the vocabulary and the cross-entropy, over a
/// vocabulary-parallel matrix. Forward and backward happen at once and in parts of at most
/// 1024 rows, whose logits alone exist, and never a second copy of any.
class Head {
 public:
  Head(const StageContext& context, const model::StageParameters& stage);

  /// losses: f32 [rows]. d_x: [local_rows, hidden], or empty when only the loss is wanted;
  /// with it, weights' gradients add up.
  void loss(const MicroBatch& batch, const device::Tensor& x, const device::Tensor& losses,
            const device::Tensor& d_x) const;
  /// logits: [rows, local vocabulary], for all rows.
  void logits(const device::Tensor& x, const device::Tensor& logits) const;
  std::int64_t local_vocabulary() const { return table_.dim(0); }
  std::int64_t first_token() const { return first_token_; }

 private:
  void loss_of_rows(const MicroBatch& batch, const device::Tensor& y, const device::Tensor& losses,
                    const device::Tensor& d_y) const;

  const StageContext& context_;
  Norm norm_;
  device::Tensor table_;  // [local vocabulary, hidden]: tied to the embedding, or its own
  device::Tensor d_table_;
  std::int64_t first_token_;
};

}  // namespace trireme::layers
