// SPDX-License-Identifier: Apache-2.0
#include "head.hpp"

#include "tensor_parallel.hpp"
#include "vocabulary.hpp"

#include <algorithm>

namespace trireme::layers {
namespace {

using device::Tensor;

/// Alignment of rows of logits, in elements: vocabularies are often odd (GPT-2's is 50257), and
/// GEMMs of rows that begin anywhere are several times slower on a GPU.
constexpr std::int64_t row_unit = 64;

const char* table_name(const StageContext& context) {
  return context.config.tie_word_embeddings ? "embedding.weight" : "head.weight";
}

}  // namespace

Head::Head(const StageContext& context, const model::StageParameters& stage)
    : context_(context),
      norm_(context, stage, "final_norm"),
      table_(stage.parameter(table_name(context))),
      d_table_(stage.gradient(table_name(context))),
      first_token_(layers::first_token(stage, table_name(context))) {}

void Head::loss(const MicroBatch& batch, const Tensor& x, const Tensor& losses,
                const Tensor& d_x) const {
  auto& arena = context_.workspace;
  const device::ArenaScope scope(arena);
  const auto kept = norm_.allocate(arena);
  const auto y_local = arena.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  norm_.forward(x, kept, y_local);
  const auto y = gather_rows(context_, y_local);
  Tensor d_local;
  Tensor d_y;
  if (d_x) {
    d_local = arena.allocate(context_.dtype, {x.dim(0), x.dim(1)});
    d_y = terms_of(context_, d_local);
  }
  for (std::int64_t row = 0; row < y.dim(0); row += context_.loss_rows) {
    const auto count = std::min(context_.loss_rows, y.dim(0) - row);
    const MicroBatch part{batch.tokens, batch.targets.slice(0, row, count), batch.first_sequence,
                          batch.loss_scale, batch.dropout};
    loss_of_rows(part, y.slice(0, row, count), losses.slice(0, row, count),
                 d_y ? d_y.slice(0, row, count) : Tensor{});
    context_.progress();
  }
  if (!d_x) return;
  sum_rows(context_, d_y, d_local);
  norm_.backward(d_local, x, kept, {}, d_x);
}

void Head::loss_of_rows(const MicroBatch& batch, const Tensor& y, const Tensor& losses,
                        const Tensor& d_y) const {
  auto& kernels = context_.kernels;
  auto& arena = context_.workspace;
  const device::ArenaScope scope(arena);
  const auto rows = y.dim(0);
  const auto parts = context_.tensor.size();
  const auto pitch = (local_vocabulary() + row_unit - 1) / row_unit * row_unit;
  const auto logits = arena.allocate(context_.dtype, {rows, pitch}).slice(1, 0, local_vocabulary());
  const auto lse = arena.allocate(device::DType::f32, {rows});
  const auto stats = arena.allocate(device::DType::f32, {3, rows});
  auto all_stats = stats.reshape({1, 3, rows});
  kernels.issue(device::LinearForward{.x = y, .w = table_, .y = logits});
  kernels.issue(device::CrossEntropyStats{logits, batch.targets, first_token_, stats});
  if (parts > 1) {
    all_stats = arena.allocate(device::DType::f32, {parts, 3, rows});
    gather(context_, stats, all_stats);
  }
  kernels.issue(device::CrossEntropyCombine{all_stats, batch.targets, lse, losses});
  if (!d_y) return;
  kernels.issue(device::CrossEntropyGradient{.logits = logits,
                                             .targets = batch.targets,
                                             .first_token = first_token_,
                                             .lse = lse,
                                             .factor = batch.loss_scale});
  kernels.issue(device::LinearBackwardInput{logits, table_, d_y});
  kernels.issue(device::LinearBackwardWeight{.dy = logits, .x = y, .dw = d_table_});
}

void Head::logits(const Tensor& x, const Tensor& logits) const {
  auto& arena = context_.workspace;
  const device::ArenaScope scope(arena);
  const auto kept = norm_.allocate(arena);
  const auto y = arena.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  norm_.forward(x, kept, y);
  context_.kernels.issue(
      device::LinearForward{.x = gather_rows(context_, y), .w = table_, .y = logits});
}

}  // namespace trireme::layers
