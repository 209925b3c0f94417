// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ranks_text.hpp"

#include "trireme/base/format.hpp"

namespace trireme::comm {

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8;
  if (ranks.size() <= most) {
    return base::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", base::join(ranks, ", "));
  }
  const std::vector<int> first(ranks.begin(), ranks.begin() + most);
  return base::format("ranks {} and {} more", base::join(first, ", "), ranks.size() - most);
}

}  // namespace trireme::comm
