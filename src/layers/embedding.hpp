// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/decoder_stage.hpp"

#include "layers/weights.hpp"

namespace trireme::layers {

/// Embedding of tokens in the residual stream: a vocabulary-parallel table, and GPT-2's learned
/// positions.
class Embedding {
 public:
  Embedding(const StageContext& context, const model::StageParameters& stage);

  /// out: [local_rows, hidden].
  void forward(const MicroBatch& batch, const device::Tensor& out) const;
  void backward(const MicroBatch& batch, const device::Tensor& d_out) const;
  /// tokens: i32 [rows]; out: [rows, hidden], each part at its own positions.
  void decode(std::span<const SequencePart> parts, const device::Tensor& tokens,
              const device::Tensor& out) const;

 private:
  /// act(rows, their period, the first one's position) for runs of rows with consecutive positions.
  template <typename Act>
  void each_run(const Act& act) const;

  const StageContext& context_;
  device::Tensor table_;  // [local vocabulary, hidden]
  device::Tensor d_table_;
  device::Tensor positions_;  // [max_position_embeddings, hidden], or empty
  device::Tensor d_positions_;
  std::int64_t first_token_;
};

}  // namespace trireme::layers
