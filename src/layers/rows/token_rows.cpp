// SPDX-License-Identifier: Apache-2.0
#include "token_rows.hpp"

#include "trireme/layout/token_runs.hpp"

#include <algorithm>

namespace trireme::layers {

std::vector<layout::FlatRange> token_runs_of(const StageContext& context) {
  const auto* const group = context.context_parallel;
  if (group == nullptr) return {{0, context.sequence_length}};
  return layout::token_runs(context.whole_length(), group->size(), group->rank());
}

std::vector<TokenRows> token_rows(const StageContext& context, layout::FlatRange range) {
  if (context.context_parallel == nullptr) return {{range, range.begin}};
  const auto runs = token_runs_of(context);
  std::vector<TokenRows> parts;
  std::int64_t row = 0;
  for (std::int64_t sequence = 0; sequence < context.micro_batch; ++sequence) {
    for (const auto& run : runs) {
      const auto begin = std::max(range.begin, row);
      const auto end = std::min(range.end, row + run.size());
      const auto first_token = sequence * context.whole_length() + run.begin + begin - row;
      if (begin < end) parts.push_back({{begin, end}, first_token});
      row += run.size();
    }
  }
  return parts;
}

}  // namespace trireme::layers
