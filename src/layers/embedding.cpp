// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "layers/rows/dropout.hpp"
#include "layers/rows/token_rows.hpp"
#include "tensor_parallel.hpp"
#include "vocabulary.hpp"

#include <algorithm>

namespace trireme::layers {

using device::Tensor;

Embedding::Embedding(const StageContext& context, const model::StageParameters& stage)
    : context_(context),
      table_(stage.parameter("embedding.weight")),
      d_table_(stage.gradient("embedding.weight")),
      positions_(stage.parameter("positions.weight")),
      d_positions_(stage.gradient("positions.weight")),
      first_token_(first_token(stage, "embedding.weight")) {}

template <typename Act>
void Embedding::each_run(const Act& act) const {
  const auto length = context_.whole_length();
  for (const auto& [rows, token] : token_rows(context_, {0, context_.rows()})) {
    act(rows, std::min(length, rows.size()), token % length);
  }
}

void Embedding::forward(const MicroBatch& batch, const Tensor& out) const {
  const device::ArenaScope scope(context_.workspace);
  const auto terms = terms_of(context_, out);
  context_.kernels.issue(device::EmbeddingForward{batch.tokens, table_, first_token_, terms});
  // One rank adds the positions, or the sum over ranks would have them many times.
  if (positions_ && context_.tensor.rank() == 0) {
    each_run([&](const layout::FlatRange& rows, std::int64_t seq, std::int64_t first) {
      context_.kernels.issue(
          device::AddPositions{terms.slice(0, rows.begin, rows.size()), positions_, seq, first});
    });
  }
  sum_rows(context_, terms, out);
  if (batch.dropout > 0.0F) {
    apply_residual_dropout(context_, batch, "dropout.embedding", 0, out, out);
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
    apply_residual_dropout(context_, batch, "dropout.embedding", 0, d_out, d_local);
  }
  const auto d_rows = gather_rows(context_, d_local);
  context_.kernels.issue(device::EmbeddingBackward{batch.tokens, d_rows, first_token_, d_table_});
  if (positions_) {
    each_run([&](const layout::FlatRange& rows, std::int64_t seq, std::int64_t first) {
      context_.kernels.issue(device::AddPositionsBackward{d_rows.slice(0, rows.begin, rows.size()),
                                                          seq, d_positions_.slice(0, first, seq)});
    });
  }
}

}  // namespace trireme::layers
