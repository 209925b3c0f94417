// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/plan.hpp"

#include "trireme/base/contract.hpp"

#include "ownership/plans/assignments.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace trireme::ownership {
namespace {

constexpr int bytes_of_gradient = 4;

/// Adds what ranks compute of a matrix.
void add_load(const OwnedTensor& tensor, const MatrixOwner& owner, std::vector<double>& load) {
  const auto of = [&](int rank) -> double& { return load[static_cast<std::size_t>(rank)]; };
  if (!owner.is_shared()) {
    of(owner.ranges.front().rank) += tensor.flops;
    return;
  }
  for (const auto& [rank, begin, end] : owner.ranges) {
    of(rank) += static_cast<double>(end - begin) * tensor.split.of_column();
  }
  for (std::size_t run = 0; run < owner.square_ranks.size(); ++run) {
    of(owner.square_ranks[run]) += tensor.split.square[run];
  }
}

/// Numbers the micro-groups of each data-parallel rank: matrices with much work first, until an
/// owner's part of a group is larger than group_bytes. Shared ones have messages of their own.
void form_micro_groups(std::span<const OwnedTensor> tensors, const PlanOptions& options,
                       Plan& plan) {
  if (options.tensor == 1) return;
  std::vector<MatrixOwner*> order;
  for (auto& owner : plan.matrices) {
    if (!owner.is_shared()) order.push_back(&owner);
  }
  std::stable_sort(order.begin(), order.end(), [&](const MatrixOwner* a, const MatrixOwner* b) {
    return tensors[a->tensor].flops > tensors[b->tensor].flops;
  });
  // The group that each data-parallel rank is filling: its number, and bytes by owner.
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

std::optional<Assignment> assignment(std::string_view name) {
  for (const auto each : all_assignments) {
    if (name == ownership::name(each)) return each;
  }
  return std::nullopt;
}

double Plan::padding() const {
  return elements == 0 ? 0.0
                       : static_cast<double>(size() - elements) / static_cast<double>(elements);
}

double Plan::max_over_mean() const {
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  if (sum <= 0) return 1.0;
  return *std::max_element(load.begin(), load.end()) * static_cast<double>(load.size()) / sum;
}

void finish(std::span<const OwnedTensor> tensors, const PlanOptions& options, ShardWriter& writer,
            Plan& plan) {
  plan.data = options.data;
  plan.tensor = options.tensor;
  std::sort(plan.matrices.begin(), plan.matrices.end(),
            [](const MatrixOwner& a, const MatrixOwner& b) { return a.tensor < b.tensor; });
  plan.buckets = writer.take_buckets();
  plan.pieces = writer.take_pieces();
  for (const auto& tensor : tensors) plan.elements += tensor.held_elements;
  form_micro_groups(tensors, options, plan);
}

namespace {

/// Plan of `shared` with tensor parallelism: data-parallel ranks own matrices whole, and inside a
/// tensor-parallel group those are shared without which some of its ranks would be idle.
Plan plan_shared_in_groups(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  auto of_shards = options;
  of_shards.tensor = 1;
  auto plan = plan_contiguous(tensors, of_shards);
  plan.assignment = Assignment::shared;
  plan.tensor = options.tensor;
  plan.load.assign(static_cast<std::size_t>(plan.ranks()), 0.0);
  std::vector<std::vector<std::size_t>> matrices(static_cast<std::size_t>(plan.data));
  for (std::size_t at = 0; at < plan.matrices.size(); ++at) {
    matrices[static_cast<std::size_t>(plan.matrices[at].ranges.front().rank)].push_back(at);
  }
  for (int shard = 0; shard < plan.data; ++shard) {
    const auto& own = matrices[static_cast<std::size_t>(shard)];
    std::vector<OwnedTensor> works;
    for (const auto at : own) works.push_back(tensors[plan.matrices[at].tensor]);
    const auto owners = divide_matrices(works, options.tensor);
    for (std::size_t index = 0; index < own.size(); ++index) {
      auto& owner = plan.matrices[own[index]];
      const auto tensor = owner.tensor;
      owner = owners[index];
      owner.tensor = tensor;
      for (auto& range : owner.ranges) range.rank += shard * options.tensor;
      for (auto& rank : owner.square_ranks) rank += shard * options.tensor;
      add_load(tensors[tensor], owner, plan.load);
    }
  }
  form_micro_groups(tensors, options, plan);
  return plan;
}

Plan search(std::span<const OwnedTensor> tensors, const PlanOptions& options,
            Assignment assignment) {
  switch (assignment) {
    case Assignment::contiguous:
      return plan_contiguous(tensors, options);
    case Assignment::padded:
      return plan_padded(tensors, options);
    case Assignment::shared:
      return options.tensor == 1 ? plan_matrix_cuts(tensors, options)
                                 : plan_shared_in_groups(tensors, options);
  }
  return {};
}

/// Plans that were asked for last. A search takes up to a second, and what asks for the same plan
/// again is many: the engine and its savers, and `trireme plan` for each tensor-parallel rank and
/// owner of a stage.
class LatestPlans {
 public:
  /// Searches if it must, one thread at a time.
  Plan of(std::span<const OwnedTensor> tensors, const PlanOptions& options, Assignment assignment) {
    const std::scoped_lock lock(mutex_);
    for (const auto& entry : entries_) {
      if (entry.assignment == assignment && entry.options == options &&
          std::equal(tensors.begin(), tensors.end(), entry.tensors.begin(), entry.tensors.end())) {
        return entry.plan;
      }
    }
    Entry entry{{tensors.begin(), tensors.end()},
                options,
                assignment,
                search(tensors, options, assignment)};
    if (entries_.size() == most) entries_.pop_front();
    return entries_.emplace_back(std::move(entry)).plan;
  }

 private:
  struct Entry {
    std::vector<OwnedTensor> tensors;
    PlanOptions options;
    Assignment assignment;
    Plan plan;
  };
  /// Some for a stage: what is reduced at the end of a step has plans of its own.
  static constexpr std::size_t most = 8;

  std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace

Plan make_plan(std::span<const OwnedTensor> tensors, const PlanOptions& options,
               Assignment assignment) {
  TRIREME_EXPECT(options.data > 0 && options.tensor > 0 && options.alignment > 0 &&
                     options.bucket_elements > 0 && options.least_columns > 0,
                 "degrees, sizes and alignment are positive");
  static LatestPlans latest;
  return latest.of(tensors, options, assignment);
}

double bytes_on_wire(const Plan& plan, int parameter_bytes) {
  return static_cast<double>(plan.size()) * (plan.data - 1) * plan.tensor *
         (bytes_of_gradient + parameter_bytes);
}

}  // namespace trireme::ownership
