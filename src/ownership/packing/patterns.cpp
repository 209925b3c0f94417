// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/patterns.hpp"

#include <algorithm>
#include <utility>

namespace trireme::ownership {
namespace {

/// Patterns that are completed before the search is given up.
constexpr long most_nodes = 1'000'000;
/// A bin holds at most so many more, and so many fewer, groups of a kind than its fair part.
constexpr int spread = 2;

}  // namespace

Demand::Demand(const GroupKinds& kinds) : items(kinds.item_counts) {
  for (const auto& kind : kinds.groups) {
    groups.push_back(static_cast<int>(kind.members.size()));
    sum = sum + kind.all() * groups.back();
  }
}

bool PatternSearch::is_over() const {
  return nodes_ >= most_nodes;
}

void PatternSearch::begin_bin(const Demand& demand, std::span<const double> prices,
                              const Item& room) {
  demand_ = &demand;
  prices_ = prices;
  room_ = room;
  group_prices_.clear();
  for (const auto& kind : kinds_.groups) {
    double price = 0;
    for (const auto item : kind.items) price += prices[item];
    group_prices_.push_back(price);
  }
  between_.clear();
  const double part = std::clamp(room.load / demand.sum.load, 0.0, 1.0);
  for (const int left : demand.groups) {
    const int fair = static_cast<int>(part * left);
    between_.emplace_back(std::max(0, fair - spread), std::min(left, fair + 1 + spread));
  }
}

std::vector<double> PatternSearch::values_of_cuts() {
  const std::vector<double> free_cuts(kinds_.cuts, 0.0);
  std::vector<double> values;
  const double whole = best({}, free_cuts).value;
  for (std::size_t kind = 0; kind < kinds_.groups.size(); ++kind) {
    for (std::size_t from = 1; from < kinds_.groups[kind].size(); ++from) {
      values.push_back(demand_->groups[kind] > 0 ? best({kind, from}, free_cuts).value - whole
                                                 : impossible);
    }
  }
  return values;
}

Pattern PatternSearch::best(Remainder remainder, std::span<const double> cut_values) {
  cut_values_ = cut_values;
  counts_.assign(kinds_.groups.size(), 0);
  best_ = {};
  Item sum;
  double value = 0;
  if (remainder.kind != none) {
    const auto& kind = kinds_.groups[remainder.kind];
    sum = kind.all() - kind.until[remainder.from];
    for (auto at = remainder.from; at < kind.size(); ++at) value += prices_[kind.items[at]];
  }
  extend(0, sum, value);
  return std::move(best_);
}

/// All counts of groups of `kind` and those behind it.
void PatternSearch::extend(std::size_t kind, const Item& sum, double value) {
  if (!fits(sum) || is_over()) return;
  if (kind + 1 == kinds_.groups.size()) {
    complete(sum, value, {});
    cut_one(sum, value);
    return;
  }
  const auto [least, most] = between_[kind];
  for (int count = least; count <= most; ++count) {
    counts_[kind] = count;
    extend(kind + 1, sum + kinds_.groups[kind].all() * count, value + group_prices_[kind] * count);
  }
  counts_[kind] = 0;
}

void PatternSearch::cut_one(const Item& sum, double value) {
  if (cut_values_.empty()) return;
  for (std::size_t at = 0; at < kinds_.groups.size(); ++at) {
    const auto& kind = kinds_.groups[at];
    if (demand_->groups[at] <= counts_[at]) continue;
    double front = 0;
    for (std::size_t from = 1; from < kind.size(); ++from) {
      front += prices_[kind.items[from - 1]];
      complete(sum + kind.until[from], value + front + cut_values_[kind.first_cut + from - 1],
               {at, from});
    }
  }
}

/// Adds as many groups of the last kind as fit.
void PatternSearch::complete(const Item& sum, double value, Remainder cut) {
  if (!fits(sum)) return;
  ++nodes_;
  const auto last = kinds_.groups.size() - 1;
  const auto& each = kinds_.groups[last].all();
  const Item room = room_ - sum;
  double most = demand_->groups[last] - (cut.kind == last ? 1 : 0);
  if (each.load > 0) most = std::min(most, room.load / each.load);
  if (each.elements > 0) {
    const std::int64_t whole = room.elements / each.elements;
    most = std::min(most, static_cast<double>(whole));
  }
  const int count = static_cast<int>(most);
  const double all = value + group_prices_[last] * count;
  if (all <= best_.value) return;
  best_ = {counts_, cut, sum + each * count, all};
  best_.counts[last] = count;
}

}  // namespace trireme::ownership
