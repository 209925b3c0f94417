// SPDX-License-Identifier: Apache-2.0
// Owners and sharers of matrices in a tensor-parallel group.
#include "trireme/base/contract.hpp"
#include "trireme/ownership/plan.hpp"

#include "ownership/packing/packing.hpp"
#include "ownership/packing/renewals.hpp"
#include "ownership/plans/columns.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trireme::ownership {
namespace {

/// Largest load over the group's mean below which no more matrices are shared: a shared matrix
/// costs exchanges that FLOPs do not show.
constexpr double close_to_mean = 1.02;
/// Part of the group's mean below which a matrix is not worth its exchanges.
constexpr double least_of_mean = 0.2;

/// One way to divide the matrices.
struct Division {
  std::vector<MatrixOwner> owners;
  std::vector<double> load;

  double largest_load() const { return *std::max_element(load.begin(), load.end()); }
};

class GroupDivider {
 public:
  GroupDivider(std::span<const OwnedTensor> tensors, std::size_t ranks)
      : tensors_(tensors), ranks_(ranks), matrices_(tensors.size()) {
    double sum = 0;
    for (const auto& tensor : tensors_) sum += tensor.flops;
    mean_ = sum / static_cast<double>(ranks);
    // Matrices that can be shared come first, the largest of them before others.
    std::iota(matrices_.begin(), matrices_.end(), std::size_t{0});
    std::stable_sort(matrices_.begin(), matrices_.end(), [&](std::size_t a, std::size_t b) {
      if (can_be_shared(a) != can_be_shared(b)) return can_be_shared(a);
      return tensors_[a].flops > tensors_[b].flops;
    });
  }

  Division best() const {
    const auto sharable = static_cast<std::size_t>(std::count_if(
        matrices_.begin(), matrices_.end(), [&](std::size_t at) { return can_be_shared(at); }));
    Division best = divide(0);
    // In steps that grow, so that many matrices cost few tries.
    for (std::size_t count = 0; count < sharable && best.largest_load() > close_to_mean * mean_;) {
      count = std::min(sharable, count + std::max<std::size_t>(1, count / 2));
      auto division = divide(count);
      if (division.largest_load() < best.largest_load()) best = std::move(division);
    }
    return best;
  }

 private:
  bool can_be_shared(std::size_t at) const {
    return tensors_[at].split.possible() && tensors_[at].flops >= least_of_mean * mean_;
  }

  /// The first `shared` matrices shared, the others whole.
  Division divide(std::size_t shared) const {
    Division division = with_items(shared);
    if (shared == 0) return division;
    ColumnDivision columns(std::move(division.load), PlanOptions{}.least_columns);
    for (std::size_t at = 0; at < shared; ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      columns.add({.columns = tensor.shape.longer(), .flops = tensor.split.of_column()});
    }
    auto divided = columns.lowest();
    for (std::size_t at = 0; at < shared; ++at) {
      division.owners[at].ranges = std::move(divided.ranges[at]);
    }
    division.load = std::move(divided.load);
    return division;
  }

  /// Places whole matrices, and the [n, n] work of shared ones.
  Division with_items(std::size_t shared) const {
    std::vector<Item> items;
    for (std::size_t at = 0; at < matrices_.size(); ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      if (at >= shared) {
        items.push_back({tensor.flops, 0});
      } else {
        for (const double flops : tensor.split.square) items.push_back({flops, 0});
      }
    }
    Bins bins{.load = std::vector<double>(ranks_, 0.0),
              .bins_per_shard = 1,
              .elements = std::vector<std::int64_t>(ranks_, 0),
              .most_elements = std::vector<std::int64_t>(ranks_, 0)};
    const auto bin_of = pack(items, bins);
    Division division{.owners = {}, .load = std::move(bins.load)};
    std::size_t item = 0;
    const auto next_rank = [&] { return static_cast<int>(bin_of[item++]); };
    for (std::size_t at = 0; at < matrices_.size(); ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      MatrixOwner owner{.tensor = matrices_[at], .ranges = {}, .square_ranks = {}};
      if (at >= shared) {
        owner.ranges.push_back({next_rank(), 0, tensor.shape.longer()});
      } else {
        for (std::size_t k = 0; k < tensor.split.square.size(); ++k) {
          owner.square_ranks.push_back(next_rank());
        }
      }
      division.owners.push_back(std::move(owner));
    }
    return division;
  }

  std::span<const OwnedTensor> tensors_;
  std::size_t ranks_;
  std::vector<std::size_t> matrices_;
  /// Load of a rank when all is divided evenly.
  double mean_ = 0;
};

/// Owners of whole matrices, in the order of the tensors, exchanged.
void spread_renewals_of(std::span<const OwnedTensor> tensors, std::vector<MatrixOwner>& owners) {
  std::vector<PlacedMatrix> matrices;
  std::vector<Placed> placed;
  std::vector<MatrixOwner*> whole;
  for (auto& owner : owners) {
    if (owner.is_shared()) continue;
    whole.push_back(&owner);
    matrices.push_back({&tensors[owner.tensor], 0});
    placed.push_back({static_cast<std::size_t>(owner.ranges.front().rank)});
  }
  RenewalSpreader().spread(matrices, placed);
  for (std::size_t index = 0; index < whole.size(); ++index) {
    whole[index]->ranges.front().rank = static_cast<int>(placed[index].bin);
  }
}

}  // namespace

std::vector<MatrixOwner> divide_matrices(std::span<const OwnedTensor> matrices, int ranks) {
  TRIREME_EXPECT(ranks > 0, "at least one rank");
  auto owners = GroupDivider(matrices, static_cast<std::size_t>(ranks)).best().owners;
  std::sort(owners.begin(), owners.end(),
            [](const MatrixOwner& a, const MatrixOwner& b) { return a.tensor < b.tensor; });
  spread_renewals_of(matrices, owners);
  return owners;
}

}  // namespace trireme::ownership
