// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/suggest.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::base {
namespace {

/// Optimal string alignment distance: insert, delete, replace, swap of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before(width);
  std::vector<std::size_t> last(width);
  std::vector<std::size_t> now(width);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string> candidates) {
  std::optional<std::string> nearest;
  // A third of the letters may be wrong; beyond that a guess confuses more than it helps.
  std::size_t smallest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto nearest = nearest_word(word, candidates);
  return nearest ? format("; did you mean '{}'?", *nearest) : std::string{};
}

std::vector<int> divisors(int number) {
  std::vector<int> found;
  std::vector<int> partners;  // quotients of those below the square root, descending
  for (int candidate = 1; candidate <= number / candidate; ++candidate) {
    if (number % candidate != 0) continue;
    found.push_back(candidate);
    if (candidate != number / candidate) partners.push_back(number / candidate);
  }
  found.insert(found.end(), partners.rbegin(), partners.rend());
  return found;
}

}  // namespace trireme::base
