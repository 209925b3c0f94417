// SPDX-License-Identifier: Apache-2.0
#include "optimum.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace trireme::bench {
namespace {

using Counts = std::vector<int>;

constexpr double divisible_below = 0.01;  ///< of the mean load
constexpr double precision = 1.001;

class Filling {
 public:
  Filling(const std::map<double, int, std::greater<>>& kinds, int ranks, double capacity,
          long most_nodes)
      : ranks_(ranks), capacity_(capacity), nodes_left_(most_nodes) {
    double sum = 0;
    for (const auto& [cost, count] : kinds) {
      costs_.push_back(cost);
      left_.push_back(count);
      sum += cost * count;
    }
    slack_ = capacity * ranks - sum;
  }

  /// Whether all fit; none: not decided.
  std::optional<bool> possible() {
    if (slack_ < 0 || costs_.front() > capacity_) return false;
    const bool found = next_rank(ranks_, slack_);
    if (nodes_left_ <= 0 && !found) return std::nullopt;
    return found;
  }

 private:
  bool next_rank(int ranks, double slack) {
    const auto first = static_cast<std::size_t>(
        std::find_if(left_.begin(), left_.end(), [](int count) { return count > 0; }) -
        left_.begin());
    if (first == left_.size()) return true;
    if (ranks == 0 || failed_.count({ranks, left_}) != 0) return false;
    --left_[first];
    const bool found = fill(first, capacity_ - costs_[first], ranks, slack);
    ++left_[first];
    if (!found) failed_.insert({ranks, left_});
    return found;
  }

  /// Adds matrices from `kind` on to the open rank, most of each kind first.
  bool fill(std::size_t kind, double room, int ranks, double slack) {
    if (--nodes_left_ <= 0) return false;
    if (kind == costs_.size()) return room <= slack && next_rank(ranks - 1, slack - room);
    const int most = std::min(left_[kind], static_cast<int>(room / costs_[kind]));
    for (int count = most; count >= 0; --count) {
      left_[kind] -= count;
      const bool found = fill(kind + 1, room - count * costs_[kind], ranks, slack);
      left_[kind] += count;
      if (found) return true;
    }
    return false;
  }

  int ranks_;
  double capacity_;
  long nodes_left_;
  double slack_ = 0;
  std::vector<double> costs_;
  Counts left_;
  std::set<std::pair<int, Counts>> failed_;
};

}  // namespace

double bound_of_largest_load(std::span<const double> costs, int ranks, double found,
                             long most_nodes) {
  const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / ranks;
  std::map<double, int, std::greater<>> kinds;
  for (const double cost : costs) {
    if (cost >= divisible_below * mean) ++kinds[cost];
  }
  double bound = std::max(mean, kinds.empty() ? 0.0 : kinds.begin()->first);
  double above = found;
  while (!kinds.empty() && above > bound * precision) {
    const double middle = (bound + above) / 2;
    const auto possible = Filling(kinds, ranks, middle, most_nodes).possible();
    if (!possible) break;
    (*possible ? above : bound) = middle;
  }
  return bound;
}

}  // namespace trireme::bench
