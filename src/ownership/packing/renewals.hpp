// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include "ownership/packing/packing.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace trireme::ownership {

/// A matrix that has a bin, and the bucket in which it lies.
struct PlacedMatrix {
  const OwnedTensor* tensor = nullptr;
  std::size_t bucket = 0;
};

/// Exchanges bins of matrices that are alike, those of a bucket that follow each other without a
/// gap as a whole, such that a bin renews few in the same turn: all wait for the bin with most work
/// in a step, not in the mean. No bin's load or elements change.
class RenewalSpreader {
 public:
  /// `matrices` and `placed`: alike long, in the order of the tensors. What was placed by earlier
  /// calls counts, but stays.
  void spread(std::span<const PlacedMatrix> matrices, std::vector<Placed>& placed);

 private:
  /// Matrices [begin, end) that follow each other without a gap.
  struct Unit {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  using Given = std::span<const PlacedMatrix>;

  void add(Given matrices, const Unit& unit, std::size_t bin);
  void remove(Given matrices, const Unit& unit, std::size_t bin);
  double work_beside(Given matrices, const Unit& unit, std::size_t bin) const;
  bool exchange_gains(Given matrices, const std::vector<Placed>& placed, const Unit& a,
                      const Unit& b);
  void exchange(Given matrices, std::vector<Placed>& placed, const Unit& a, const Unit& b);

  std::map<std::pair<std::size_t, std::int64_t>, double> in_turn_;  // [bin, turn]: FLOPs
  std::size_t pairs_ = 0;                                           // looked at so far
};

}  // namespace trireme::ownership
