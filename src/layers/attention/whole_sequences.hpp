// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/flat.hpp"

#include <vector>

/// Attention of context-parallel ranks: each has some runs of every sequence's tokens and attends
/// with them to the keys of whole sequences (Llama 3, Dubey et al. 2024, section 3.3.2). A query
/// sees all of its keys in one call, so that forward adds what one rank adds, in its order.
namespace trireme::layers {

/// Keys (rotated) and values, or their gradients: [micro_batch, seq, kv_heads, head_dim] each.
struct KeysAndValues {
  device::Tensor keys;
  device::Tensor values;
};

/// Queries of one run, the last of its keys.
struct RunOfQueries {
  std::int64_t first = 0;  ///< of the rank's queries in a sequence
  std::int64_t count = 0;
  std::int64_t keys = 0;  ///< that the last query sees: [0, keys) of the sequence
};

/// Collective over the context-parallel ranks. Keys and values of whole sequences, in the
/// workspace, from those that each rank has.
KeysAndValues gather_sequences(const StageContext& context, const KeysAndValues& own);

/// Runs of the rank's queries in a sequence, ascending.
std::vector<RunOfQueries> runs_of_queries(const StageContext& context);

/// Queries of one run with the keys that they see.
device::Attention attention_of_run(const device::Attention& own, const KeysAndValues& whole,
                                   const RunOfQueries& run, std::int64_t index);

/// Collective over the context-parallel ranks. Backward of attention to whole sequences: dk and dv
/// of the rank's own tokens are sums over the ranks, in their order.
void attend_backward(const StageContext& context, const device::AttentionBackward& own);

}  // namespace trireme::layers
