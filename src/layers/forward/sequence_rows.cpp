// SPDX-License-Identifier: Apache-2.0
#include "sequence_rows.hpp"

#include <algorithm>

namespace trireme::layers {
namespace {

/// FP8 has one scale for a tensor, which needs the other half's numbers; context-parallel ranks
/// gather keys and values of all sequences at once.
bool takes_halves(const StageContext& context) {
  return context.tensor_overlap == TensorOverlap::halves && context.tensor.size() > 1 &&
         context.micro_batch > 1 && context.linear_forward == LinearForward::plain &&
         context.context_parallel == nullptr;
}

SequenceRows all_rows(const StageContext& context) {
  return {.first_sequence = 0,
          .sequences = context.micro_batch,
          .first = 0,
          .count = context.rows(),
          .first_local = 0,
          .local_count = context.local_rows(),
          .parts = {}};
}

SequenceRows rows_of(const StageContext& context, std::int64_t first_sequence,
                     std::int64_t sequences) {
  SequenceRows rows{.first_sequence = first_sequence,
                    .sequences = sequences,
                    .first = first_sequence * context.sequence_length,
                    .count = sequences * context.sequence_length,
                    .first_local = 0,
                    .local_count = 0,
                    .parts = {}};
  if (context.sequence_parallel == model::SequenceParallel::off) {
    rows.first_local = rows.first;
    rows.local_count = rows.count;
    return rows;
  }
  const auto local = context.local_rows();
  for (std::int64_t rank = 0; rank <= context.tensor.size(); ++rank) {
    rows.parts.push_back(std::clamp<std::int64_t>(rank * local - rows.first, 0, rows.count));
  }
  const auto own = static_cast<std::size_t>(context.tensor.rank());
  rows.local_count = rows.parts[own + 1] - rows.parts[own];
  rows.first_local =
      rows.local_count == 0 ? 0 : rows.first + rows.parts[own] - context.first_local_row();
  return rows;
}

}  // namespace

comm::Cuts SequenceRows::cuts(std::int64_t width) const {
  comm::Cuts cuts;
  for (const auto part : parts) cuts.push_back(part * width);
  return cuts;
}

std::vector<SequenceRows> forward_turns(const StageContext& context) {
  if (!takes_halves(context)) return {all_rows(context)};
  const auto first_half = (context.micro_batch + 1) / 2;
  return {rows_of(context, 0, first_half),
          rows_of(context, first_half, context.micro_batch - first_half)};
}

}  // namespace trireme::layers
