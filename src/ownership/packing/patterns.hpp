// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/packing/group_kinds.hpp"
#include "ownership/packing/packing.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace trireme::ownership {

/// Groups that no bin holds yet.
struct Demand {
  std::vector<int> groups;  ///< [kind]
  std::vector<int> items;   ///< [item kind], those of cut groups too
  Item sum;

  explicit Demand(const GroupKinds& kinds);
};

/// Items [from, end) of a group that is cut, or nothing.
struct Remainder {
  std::size_t kind = none;
  std::size_t from = 0;
};

inline constexpr double impossible = -std::numeric_limits<double>::infinity();

/// Content of a bin, behind the remainder of the group whose front is in the bin before it.
struct Pattern {
  std::vector<int> counts;  ///< whole groups, [kind]
  Remainder cut;            ///< goes to the next bin
  Item sum;
  double value = impossible;  ///< sum of its items' prices
};

/// Search for the pattern of the most value among all that fit into a bin (bin completion, Korf
/// 2002). A pattern has near to its fair part of each kind of groups.
class PatternSearch {
 public:
  explicit PatternSearch(const GroupKinds& kinds) : kinds_(kinds) {}

  /// Patterns of a bin with so much room, for as long as demand and prices ([item kind]) stay.
  void begin_bin(const Demand& demand, std::span<const double> prices, const Item& room);
  /// Value that each cut leaves to the next bin, over that of a bin without a remainder: [cut].
  std::vector<double> values_of_cuts();
  /// The best of a bin that has `remainder`; groups are cut where `cut_values` has a value for it.
  Pattern best(Remainder remainder, std::span<const double> cut_values);

  /// So many patterns were seen that the search is given up.
  bool is_over() const;

 private:
  bool fits(const Item& item) const {
    return item.load <= room_.load && item.elements <= room_.elements;
  }
  void extend(std::size_t kind, const Item& sum, double value);
  void cut_one(const Item& sum, double value);
  void complete(const Item& sum, double value, Remainder cut);

  const GroupKinds& kinds_;
  const Demand* demand_ = nullptr;
  std::span<const double> prices_;
  std::vector<double> group_prices_;          // [kind]
  std::vector<std::pair<int, int>> between_;  // [kind]: least and most groups
  Item room_;
  std::span<const double> cut_values_;
  std::vector<int> counts_;  // [kind], of the pattern that is extended
  Pattern best_;
  long nodes_ = 0;
};

}  // namespace trireme::ownership
