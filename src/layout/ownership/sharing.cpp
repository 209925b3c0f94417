// SPDX-License-Identifier: Apache-2.0
#include "layout/ownership/sharing.hpp"

#include "trireme/base/contract.hpp"

#include "layout/ownership/alignment.hpp"
#include "layout/ownership/columns.hpp"
#include "layout/ownership/packing.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace trireme::layout {
namespace {

/// Largest load over the group's mean below which no more matrices are shared: a shared matrix
/// costs exchanges that FLOPs do not show.
constexpr double close_to_mean = 1.02;
/// Part of the group's mean below which a matrix is not worth its exchanges.
constexpr double least_of_mean = 0.2;

/// One way to divide a group's matrices.
struct Division {
  std::vector<MatrixOwner> owners;
  SharingGroup group;
  double most_load = 0;
  /// Every shard is below its limit.
  bool fits = false;
};

class GroupDivider {
 public:
  GroupDivider(std::span<const OwnedTensor> tensors, std::span<const std::size_t> matrices,
               const OwnershipOptions& options, const SharingGroup& group)
      : tensors_(tensors),
        matrices_(matrices.begin(), matrices.end()),
        options_(options),
        group_(group) {
    double sum = std::accumulate(group.load.begin(), group.load.end(), 0.0);
    for (const auto at : matrices_) sum += tensors_[at].flops;
    mean_ = sum / static_cast<double>(group.load.size());
    // What can be shared first, and of that the largest.
    std::stable_sort(matrices_.begin(), matrices_.end(), [&](std::size_t a, std::size_t b) {
      if (can_be_shared(a) != can_be_shared(b)) return can_be_shared(a);
      return tensors_[a].flops > tensors_[b].flops;
    });
  }

  Division best() const {
    const auto sharable = static_cast<std::size_t>(std::count_if(
        matrices_.begin(), matrices_.end(), [&](std::size_t at) { return can_be_shared(at); }));
    Division best = own_whole();
    // In steps that grow, so that many matrices cost few tries.
    for (std::size_t count = 0; count < sharable && !is_good(best);) {
      count = std::min(sharable, count + std::max<std::size_t>(1, count / 2));
      auto division = divide(count);
      if (division && is_better(*division, best)) best = *std::move(division);
    }
    return best;
  }

 private:
  bool can_be_shared(std::size_t at) const {
    return tensors_[at].split.possible() && tensors_[at].flops >= least_of_mean * mean_;
  }

  bool is_good(const Division& division) const {
    return division.fits && division.most_load <= close_to_mean * mean_;
  }

  static bool is_better(const Division& a, const Division& b) {
    return a.fits != b.fits ? a.fits : a.most_load < b.most_load;
  }

  Division own_whole() const {
    Division division = with_items(0);
    measure(division);
    return division;
  }

  /// The first `shared` matrices shared, the others whole; none if columns find no room.
  std::optional<Division> divide(std::size_t shared) const {
    Division division = with_items(shared);
    if (!divide_columns(shared, division)) return std::nullopt;
    measure(division);
    return division;
  }

  static void measure(Division& division) {
    const auto& [first, load, elements, most] = division.group;
    division.most_load = *std::max_element(load.begin(), load.end());
    division.fits = *std::max_element(elements.begin(), elements.end()) <= most;
  }

  /// Places whole matrices, and the [n, n] work of shared ones.
  Division with_items(std::size_t shared) const {
    Division division;
    division.group = group_;
    std::vector<Item> items;
    for (std::size_t at = 0; at < matrices_.size(); ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      if (at >= shared) {
        items.push_back({tensor.flops, aligned(tensor.held_elements, options_.alignment)});
      } else {
        for (const double flops : tensor.split.square) items.push_back({flops, 0});
      }
    }
    auto& group = division.group;
    Bins bins{.load = group.load,
              .ranks = std::vector<int>(group.load.size(), 1),
              .bins_per_shard = 1,
              .elements = group.elements,
              .most_elements = std::vector<std::int64_t>(group.load.size(), group.most_elements)};
    const auto bin_of = pack(items, bins);
    group.load = std::move(bins.load);
    group.elements = std::move(bins.elements);
    std::size_t item = 0;
    for (std::size_t at = 0; at < matrices_.size(); ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      MatrixOwner owner{.tensor = matrices_[at], .ranges = {}, .square_ranks = {}};
      const auto next_rank = [&] { return group.first_rank + static_cast<int>(bin_of[item++]); };
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

  bool divide_columns(std::size_t shared, Division& division) const {
    ColumnDivision columns(division.group, options_);
    for (std::size_t at = 0; at < shared; ++at) {
      const auto& tensor = tensors_[matrices_[at]];
      columns.add({.columns = tensor.shape.longer(),
                   .flops = tensor.split.of_column(),
                   .elements = tensor.shape.shorter()});
    }
    auto divided = columns.lowest();
    if (!divided) return false;
    for (std::size_t at = 0; at < shared; ++at) {
      division.owners[at].ranges = std::move(divided->ranges[at]);
    }
    division.group.load = std::move(divided->load);
    division.group.elements = std::move(divided->elements);
    return true;
  }

  std::span<const OwnedTensor> tensors_;
  std::vector<std::size_t> matrices_;
  const OwnershipOptions& options_;
  const SharingGroup& group_;
  /// Load of a rank when all is divided evenly.
  double mean_ = 0;
};

}  // namespace

std::vector<MatrixOwner> share_in_group(std::span<const OwnedTensor> tensors,
                                        std::span<const std::size_t> matrices,
                                        const OwnershipOptions& options, SharingGroup& group) {
  TRIREME_EXPECT(!group.load.empty() && group.load.size() == group.elements.size(),
                 "a load and a shard for each rank");
  auto division = GroupDivider(tensors, matrices, options, group).best();
  group = std::move(division.group);
  return std::move(division.owners);
}

}  // namespace trireme::layout
