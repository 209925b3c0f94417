// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/renewals.hpp"

#include <algorithm>
#include <tuple>

namespace trireme::ownership {
namespace {

/// Pairs of matrices looked at before the search is given up.
constexpr std::size_t most_pairs = 100'000;

/// Bucket, and shape, FLOPs and elements of each matrix.
using AlikeKey =
    std::pair<std::size_t,
              std::vector<std::tuple<double, std::int64_t, std::int64_t, std::int64_t>>>;

AlikeKey alike_key(std::span<const PlacedMatrix> unit) {
  AlikeKey key{unit.front().bucket, {}};
  for (const auto& [tensor, bucket] : unit) {
    key.second.emplace_back(tensor->flops, tensor->shape.rows, tensor->shape.columns,
                            tensor->held_elements);
  }
  return key;
}

bool lies_in_one_bin(std::span<const Placed> unit) {
  return std::all_of(unit.begin(), unit.end(), [&](const Placed& each) {
    return each.bin == unit.front().bin && each.end == Placed::End::any;
  });
}

}  // namespace

void RenewalSpreader::add(Given matrices, const Unit& unit, std::size_t bin) {
  for (auto at = unit.begin; at < unit.end; ++at) {
    for (const auto& renewal : matrices[at].tensor->renewals) {
      in_turn_[{bin, renewal.turn}] += renewal.flops;
    }
  }
}

void RenewalSpreader::remove(Given matrices, const Unit& unit, std::size_t bin) {
  for (auto at = unit.begin; at < unit.end; ++at) {
    for (const auto& renewal : matrices[at].tensor->renewals) {
      in_turn_[{bin, renewal.turn}] -= renewal.flops;
    }
  }
}

/// Half of what a bin's sum of squares over turns grows by when it takes a unit, but for the unit's
/// own squares, which it brings to any bin.
double RenewalSpreader::work_beside(Given matrices, const Unit& unit, std::size_t bin) const {
  double sum = 0;
  for (auto at = unit.begin; at < unit.end; ++at) {
    for (const auto& renewal : matrices[at].tensor->renewals) {
      const auto found = in_turn_.find({bin, renewal.turn});
      if (found != in_turn_.end()) sum += renewal.flops * found->second;
    }
  }
  return sum;
}

/// Whether the squares of bins' work in a turn would have a smaller sum.
bool RenewalSpreader::exchange_gains(Given matrices, const std::vector<Placed>& placed,
                                     const Unit& a, const Unit& b) {
  const auto bin_a = placed[a.begin].bin;
  const auto bin_b = placed[b.begin].bin;
  if (bin_a == bin_b) return false;
  remove(matrices, a, bin_a);
  remove(matrices, b, bin_b);
  const double now = work_beside(matrices, a, bin_a) + work_beside(matrices, b, bin_b);
  const double then = work_beside(matrices, a, bin_b) + work_beside(matrices, b, bin_a);
  add(matrices, a, bin_a);
  add(matrices, b, bin_b);
  // A gain below a part in a billion is rounding, and may be had for ever.
  return then < now * (1 - 1e-9);
}

void RenewalSpreader::exchange(Given matrices, std::vector<Placed>& placed, const Unit& a,
                               const Unit& b) {
  const auto bin_a = placed[a.begin].bin;
  const auto bin_b = placed[b.begin].bin;
  for (const auto& [unit, from, to] : {std::tuple(a, bin_a, bin_b), std::tuple(b, bin_b, bin_a)}) {
    remove(matrices, unit, from);
    add(matrices, unit, to);
    for (auto at = unit.begin; at < unit.end; ++at) placed[at].bin = to;
  }
}

void RenewalSpreader::spread(Given matrices, std::vector<Placed>& placed) {
  std::map<AlikeKey, std::vector<Unit>> alike;
  for (Unit unit; unit.begin < matrices.size(); unit.begin = unit.end) {
    unit.end = unit.begin + 1;
    while (unit.end < matrices.size() && matrices[unit.end].tensor->joined) ++unit.end;
    for (auto at = unit.begin; at < unit.end; ++at) add(matrices, {at, at + 1}, placed[at].bin);
    const auto count = unit.end - unit.begin;
    if (lies_in_one_bin(std::span(placed).subspan(unit.begin, count))) {
      alike[alike_key(matrices.subspan(unit.begin, count))].push_back(unit);
    }
  }
  if (in_turn_.empty()) return;
  for (bool better = true; better && pairs_ < most_pairs;) {
    better = false;
    for (const auto& [key, units] : alike) {
      for (std::size_t a = 0; a < units.size() && pairs_ < most_pairs; ++a) {
        for (std::size_t b = a + 1; b < units.size(); ++b) {
          ++pairs_;
          if (!exchange_gains(matrices, placed, units[a], units[b])) continue;
          exchange(matrices, placed, units[a], units[b]);
          better = true;
        }
      }
    }
  }
}

}  // namespace trireme::ownership
