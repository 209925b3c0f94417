// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "dropout.hpp"
#include "tensor_parallel.hpp"
#include "vocabulary.hpp"

namespace trireme::layers {

using device::Tensor;

Embedding::Embedding(const StageContext& context, const model::StageParameters& stage)
    : context_(context),
      table_(stage.parameter("embedding.weight")),
      d_table_(stage.gradient("embedding.weight")),
      positions_(stage.parameter("positions.weight")),
      d_positions_(stage.gradient("positions.weight")),
      first_token_(first_token(stage, "embedding.weight")) {}

void Embedding::forward(const MicroBatch& batch, const Tensor& out) const {
  const device::ArenaScope scope(context_.workspace);
  const auto terms = terms_of(context_, out);
  context_.kernels.issue(device::EmbeddingForward{batch.tokens, table_, first_token_, terms});
  // One rank adds the positions, or the sum over ranks would have them many times.
  if (positions_ && context_.tensor.rank() == 0) {
    context_.kernels.issue(device::AddPositions{terms, positions_, context_.sequence_length, 0});
  }
  sum_rows(context_, terms, out);
  if (batch.dropout > 0.0F) {
    context_.kernels.issue(
        device::ApplyDropout{out, residual_dropout(context_, batch, "dropout.embedding", 0), out});
  }
}

void Embedding::decode(std::span<const SequencePart> parts, const Tensor& tokens,
                       const Tensor& out) const {
  context_.kernels.issue(device::EmbeddingForward{tokens, table_, first_token_, out});
  if (positions_ && context_.tensor.rank() == 0) {
    for (const auto& part : parts) {
      context_.kernels.issue(device::AddPositions{out.slice(0, part.first_row, part.count),
                                                  positions_, part.count, part.first_position});
    }
  }
  sum_rows(context_, out, out);
}

void Embedding::backward(const MicroBatch& batch, const Tensor& d_out) const {
  const device::ArenaScope scope(context_.workspace);
  auto d_local = d_out;
  if (batch.dropout > 0.0F) {
    d_local = context_.workspace.allocate(context_.dtype, {d_out.dim(0), d_out.dim(1)});
    context_.kernels.issue(device::ApplyDropout{
        d_out, residual_dropout(context_, batch, "dropout.embedding", 0), d_local});
  }
  const auto d_rows = gather_rows(context_, d_local);
  context_.kernels.issue(device::EmbeddingBackward{batch.tokens, d_rows, first_token_, d_table_});
  if (positions_) {
    context_.kernels.issue(
        device::AddPositionsBackward{d_rows, context_.sequence_length, d_positions_});
  }
}

}  // namespace trireme::layers
