// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/resplit.hpp"

#include <algorithm>

namespace trireme::ownership {
namespace {

constexpr std::size_t most_divisions = 4096;

/// Items that are alike.
struct Kind {
  Item item;
  std::vector<std::size_t> members;
};

std::vector<Kind> kinds_of(std::span<const Item> items) {
  std::vector<Kind> kinds;
  for (std::size_t at = 0; at < items.size(); ++at) {
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const Kind& kind) { return kind.item == items[at]; });
    if (same != kinds.end()) {
      same->members.push_back(at);
    } else {
      kinds.push_back({items[at], {at}});
    }
  }
  return kinds;
}

/// All ways to give the first bin so many of each kind.
class Divisions {
 public:
  Divisions(const std::vector<Kind>& kinds, const Pair& pair, double load)
      : kinds_(kinds), pair_(pair), best_load_(load), counts_(kinds.size(), 0) {
    for (const auto& kind : kinds) {
      const auto count = static_cast<std::int64_t>(kind.members.size());
      all_.load += kind.item.load * static_cast<double>(count);
      all_.elements += kind.item.elements * count;
    }
  }

  std::optional<std::vector<std::size_t>> best() {
    visit(0, {});
    return std::move(best_);
  }

 private:
  void visit(std::size_t kind, Item first) {
    if (kind == kinds_.size()) {
      consider(first);
      return;
    }
    for (counts_[kind] = 0; counts_[kind] <= kinds_[kind].members.size(); ++counts_[kind]) {
      const auto count = static_cast<std::int64_t>(counts_[kind]);
      const auto& item = kinds_[kind].item;
      visit(kind + 1, {first.load + item.load * static_cast<double>(count),
                       first.elements + item.elements * count});
    }
  }

  void consider(const Item& first) {
    const auto& [load, elements, most_elements] = pair_;
    const Item second{all_.load - first.load, all_.elements - first.elements};
    const double larger = std::max(load[0] + first.load, load[1] + second.load);
    if (larger >= best_load_ * (1 - 1e-9)) return;
    if (elements[0] + first.elements > most_elements[0]) return;
    if (elements[1] + second.elements > most_elements[1]) return;
    best_load_ = larger;
    best_ = counts_;
  }

  const std::vector<Kind>& kinds_;
  const Pair& pair_;
  Item all_;
  double best_load_;
  std::vector<std::size_t> counts_;
  std::optional<std::vector<std::size_t>> best_;
};

}  // namespace

std::optional<std::vector<bool>> divide_anew(std::span<const Item> items, const Pair& pair,
                                             double load) {
  const auto kinds = kinds_of(items);
  std::size_t divisions = 1;
  for (const auto& kind : kinds) {
    divisions *= kind.members.size() + 1;
    if (divisions > most_divisions) return std::nullopt;
  }
  const auto counts = Divisions(kinds, pair, load).best();
  if (!counts) return std::nullopt;
  std::vector<bool> in_first(items.size(), false);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (std::size_t member = 0; member < (*counts)[kind]; ++member) {
      in_first[kinds[kind].members[member]] = true;
    }
  }
  return in_first;
}

}  // namespace trireme::ownership
