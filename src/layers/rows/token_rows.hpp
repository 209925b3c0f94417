// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/flat.hpp"

#include <vector>

namespace trireme::layers {

/// Tokens of a sequence that a context-parallel rank has; all of them where there is none.
std::vector<layout::FlatRange> token_runs_of(const StageContext& context);

/// Consecutive rows of a rank's micro-batch, whose tokens follow each other in the micro-batch of
/// whole sequences.
struct TokenRows {
  layout::FlatRange rows;
  /// Number of the first token among those of all sequences.
  std::int64_t first_token = 0;
};

/// Rows [range) in the fewest such parts, ascending: one where ranks have whole sequences.
std::vector<TokenRows> token_rows(const StageContext& context, layout::FlatRange range);

}  // namespace trireme::layers
