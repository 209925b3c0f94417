// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/ownership.hpp"

#include "trireme/base/contract.hpp"

#include "layout/ownership/assignments.hpp"
#include "layout/ownership/packing.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::layout {
namespace {

constexpr int bytes_of_gradient = 4;

/// Numbers the micro-groups of each data-parallel rank: matrices with much work first, until an
/// owner's part of a group is larger than group_bytes.
void form_micro_groups(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
                       OwnershipPlan& plan) {
  if (options.tensor == 1) return;
  std::vector<MatrixOwner*> order;
  for (auto& owner : plan.matrices) order.push_back(&owner);
  std::stable_sort(order.begin(), order.end(), [&](const MatrixOwner* a, const MatrixOwner* b) {
    return tensors[a->tensor].flops > tensors[b->tensor].flops;
  });
  // Of the group that each data-parallel rank is filling: its number, and bytes by owner.
  std::vector<int> number(static_cast<std::size_t>(plan.data), 0);
  std::vector<std::int64_t> bytes(plan.load.size(), 0);
  for (auto* owner : order) {
    const auto& shape = tensors[owner->tensor].shape;
    const int data_rank = owner->ranges.front().rank / plan.tensor;
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(data_rank) * plan.tensor;
    const auto bytes_of = [&](const ColumnRange& range) {
      return bytes_of_gradient * (range.end - range.begin) * shape.shorter();
    };
    auto& group = number[static_cast<std::size_t>(data_rank)];
    const bool full =
        std::any_of(owner->ranges.begin(), owner->ranges.end(), [&](const ColumnRange& range) {
          const auto so_far = bytes[static_cast<std::size_t>(range.rank)];
          return so_far > 0 && so_far + bytes_of(range) > options.group_bytes;
        });
    if (full) {
      ++group;
      std::fill(first, first + plan.tensor, 0);
    }
    owner->micro_group = group;
    for (const auto& range : owner->ranges) {
      bytes[static_cast<std::size_t>(range.rank)] += bytes_of(range);
    }
  }
}

}  // namespace

const char* name(Assignment assignment) {
  switch (assignment) {
    case Assignment::contiguous:
      return "contiguous";
    case Assignment::padded:
      return "padded";
    case Assignment::shared:
      return "shared";
  }
  return "";
}

std::optional<Assignment> assignment(std::string_view name) {
  for (const auto each : all_assignments) {
    if (name == layout::name(each)) return each;
  }
  return std::nullopt;
}

double OwnershipPlan::padding() const {
  return elements == 0 ? 0.0
                       : static_cast<double>(size() - elements) / static_cast<double>(elements);
}

double OwnershipPlan::max_over_mean() const {
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  if (sum <= 0) return 1.0;
  return *std::max_element(load.begin(), load.end()) * static_cast<double>(load.size()) / sum;
}

std::vector<int> divide_work(std::span<const double> work, int ranks) {
  TRIREME_EXPECT(ranks > 0, "at least one rank");
  const auto count = static_cast<std::size_t>(ranks);
  Bins bins{.load = std::vector<double>(count, 0.0),
            .ranks = std::vector<int>(count, 1),
            .bins_per_shard = 1,
            .elements = std::vector<std::int64_t>(count, 0),
            .most_elements = std::vector<std::int64_t>(count, 0)};
  std::vector<Item> items;
  for (const double each : work) items.push_back({each, 0});
  std::vector<int> rank_of;
  for (const auto bin : pack(items, bins)) rank_of.push_back(static_cast<int>(bin));
  return rank_of;
}

void finish(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
            ShardWriter& writer, OwnershipPlan& plan) {
  plan.data = options.data;
  plan.tensor = options.tensor;
  std::sort(plan.matrices.begin(), plan.matrices.end(),
            [](const MatrixOwner& a, const MatrixOwner& b) { return a.tensor < b.tensor; });
  plan.buckets = writer.take_buckets();
  plan.pieces = writer.take_pieces();
  for (const auto& tensor : tensors) plan.elements += tensor.held_elements;
  form_micro_groups(tensors, options, plan);
}

OwnershipPlan plan_ownership(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
                             Assignment assignment) {
  TRIREME_EXPECT(options.data > 0 && options.tensor > 0 && options.alignment > 0 &&
                     options.bucket_elements > 0 && options.ranks_per_node > 0 &&
                     options.least_columns > 0,
                 "degrees, sizes and alignment are positive");
  switch (assignment) {
    case Assignment::contiguous:
      return plan_contiguous(tensors, options);
    case Assignment::padded:
      return plan_equal_shards(tensors, options, Sharing::off);
    case Assignment::shared:
      return options.tensor == 1 ? plan_matrix_cuts(tensors, options)
                                 : plan_equal_shards(tensors, options, Sharing::on);
  }
  return {};
}

double bytes_on_wire(const OwnershipPlan& plan, int parameter_bytes) {
  return static_cast<double>(plan.size()) * (plan.data - 1) * plan.tensor *
         (bytes_of_gradient + parameter_bytes);
}

}  // namespace trireme::layout
