// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/price.hpp"

#include "trireme/base/format.hpp"

#include "ownership/price/makespan.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace trireme::ownership {
namespace {

constexpr double gradient_bytes = 4;
/// Bytes that an update reads and writes for an element: gradient, two moments, master and
/// parameter.
constexpr double update_bytes = 30;
/// Kernels of one Newton-Schulz in Gram form over a batch of equal matrices, momentum and the
/// update of the parameters included: six products with X, eleven of [n, n] matrices.
constexpr double kernels_of_whole = 20;
/// Kernels of the columns of a shared matrix; of its [n, n] work.
constexpr double kernels_of_columns = 9;
constexpr double kernels_of_square = 5;

/// Ring collective: a rank sends what is not its own once around.
double ring_seconds(double bytes, int ranks, double bandwidth) {
  return bytes * (ranks - 1) / ranks / bandwidth;
}

/// Starts of collectives for a bucket: one, or with ragged shards one for each owner. The bytes of
/// ragged shards take as long together as those of equal ones.
int starts(const PlannedBucket& bucket, RaggedCollectives ragged) {
  if (ragged == RaggedCollectives::as_equal) return 1;
  const auto& cuts = bucket.cuts;
  int owners = 0;
  bool equal = true;
  for (std::size_t at = 0; at + 1 < cuts.size(); ++at) {
    owners += cuts[at + 1] > cuts[at];
    equal = equal && cuts[at + 1] - cuts[at] == cuts[1] - cuts[0];
  }
  return equal ? 1 : owners;
}

double collective_seconds(const Plan& plan, const PlannedBucket& bucket, double bytes_of_element,
                          const MachineSpeeds& machine) {
  if (plan.data == 1) return 0;
  return starts(bucket, machine.ragged) * machine.collective_seconds +
         ring_seconds(bytes_of_element * static_cast<double>(bucket.flat.size()), plan.data,
                      machine.data_bytes(plan.data, plan.tensor));
}

/// Part of backward after which all of a bucket's gradients are complete, for each bucket: backward
/// takes as long for a matrix as it has elements.
std::vector<double> completions(const Plan& plan, std::span<const OwnedTensor> tensors) {
  std::vector<double> done;
  double elements = 0;
  for (const auto& tensor : tensors) {
    if (tensor.is_matrix()) elements += static_cast<double>(tensor.held_elements);
    done.push_back(elements);
  }
  std::vector<double> completions(plan.buckets.size(), 0.0);
  std::size_t bucket = 0;
  for (const auto& piece : plan.pieces) {
    while (piece.flat_begin >= plan.buckets[bucket].flat.end) ++bucket;
    completions[bucket] =
        std::max(completions[bucket], elements > 0 ? done[piece.tensor] / elements : 1.0);
  }
  return completions;
}

/// Reductions one after the other, each once its bucket is complete, in the last micro-batch: what
/// is left of them when its backward, two thirds of its products, has ended.
double exposed_reduction(const Plan& plan, std::span<const OwnedTensor> tensors,
                         const StepWork& work, const MachineSpeeds& machine) {
  const double backward = work.training_seconds(machine, plan.ranks()) / work.micro_batches * 2 / 3;
  const auto complete = completions(plan, tensors);
  double end = 0;
  for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
    end = std::max(end, backward * complete[bucket]) +
          collective_seconds(plan, plan.buckets[bucket], gradient_bytes, machine);
  }
  return std::max(0.0, end - backward);
}

/// Gathers one after the other from the end of the update on, those of the layers first that
/// forward needs first: how much later the first micro-batch's forward, a third of its products,
/// ends by waiting for each bucket where it first reads from it. It needs last what backward
/// completes first.
double exposed_gather(const Plan& plan, std::span<const OwnedTensor> tensors, const StepWork& work,
                      const MachineSpeeds& machine) {
  if (machine.gathers == Gathers::at_once) return gather_seconds(plan, work, machine);
  const double forward = work.training_seconds(machine, plan.ranks()) / work.micro_batches / 3;
  const auto complete = completions(plan, tensors);
  std::vector<std::size_t> order(plan.buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return complete[a] > complete[b]; });
  double end = 0;
  double waited = 0;
  for (const auto bucket : order) {
    end += collective_seconds(plan, plan.buckets[bucket], work.parameter_bytes, machine);
    waited = std::max(waited, end - forward * (1 - complete[bucket]));
  }
  return waited;
}

/// Elements of matrices that each rank computes on.
std::vector<double> owned_elements(const Plan& plan, std::span<const OwnedTensor> tensors) {
  std::vector<double> elements(plan.load.size(), 0.0);
  for (const auto& owner : plan.matrices) {
    for (const auto& [rank, begin, end] : owner.ranges) {
      elements[static_cast<std::size_t>(rank)] +=
          static_cast<double>(end - begin) *
          static_cast<double>(tensors[owner.tensor].shape.shorter());
    }
  }
  return elements;
}

/// Gather of group i + 1 and scatter of group i - 1 go on while group i is computed: the first
/// gather and the last scatter are left, and what takes longer than computing.
double tensor_exchange_seconds(const Plan& plan, std::span<const OwnedTensor> tensors,
                               double compute, const StepWork& work, const MachineSpeeds& machine) {
  if (plan.tensor == 1 || plan.matrices.empty()) return 0;
  const auto elements = owned_elements(plan, tensors);
  const double most = *std::max_element(elements.begin(), elements.end());
  int groups = 1;
  for (const auto& owner : plan.matrices) groups = std::max(groups, owner.micro_group + 1);
  const double seconds = most * (plan.tensor - 1) / plan.tensor *
                         (gradient_bytes + work.parameter_bytes) / machine.node_bytes;
  const double ends = seconds / groups;
  return ends + std::max(0.0, seconds - ends - compute) + 2 * groups * machine.collective_seconds;
}

/// Elements that a sharer sends others of a matrix that is held by rows and computed by columns,
/// and again when these are rows anew.
double elements_sent(const OwnedTensor& tensor, const MatrixOwner& owner, std::size_t sharer) {
  if (owner.rows.empty() || tensor.shape.rows >= tensor.shape.columns) return 0;
  const auto& range = owner.ranges[sharer];
  return static_cast<double>(owner.rows[sharer].size()) *
         static_cast<double>(tensor.shape.columns - (range.end - range.begin));
}

double column_exchange_seconds(const Plan& plan, std::span<const OwnedTensor> tensors,
                               const StepWork& work, const MachineSpeeds& machine) {
  std::vector<double> elements(plan.load.size(), 0.0);
  for (const auto& owner : plan.matrices) {
    for (std::size_t sharer = 0; sharer < owner.rows.size(); ++sharer) {
      elements[static_cast<std::size_t>(owner.ranges[sharer].rank)] +=
          2 * elements_sent(tensors[owner.tensor], owner, sharer);
    }
  }
  if (elements.empty()) return 0;
  return *std::max_element(elements.begin(), elements.end()) * work.parameter_bytes /
         machine.node_bytes;
}

double launch_seconds(const Plan& plan, std::span<const OwnedTensor> tensors,
                      const MachineSpeeds& machine) {
  std::vector<double> kernels(plan.load.size(), 0.0);
  std::set<std::pair<int, std::pair<std::int64_t, std::int64_t>>> batches;
  for (const auto& owner : plan.matrices) {
    const auto& shape = tensors[owner.tensor].shape;
    for (const auto& range : owner.ranges) {
      auto& count = kernels[static_cast<std::size_t>(range.rank)];
      if (owner.is_shared()) {
        count += kernels_of_columns;
      } else if (batches.insert({range.rank, {shape.shorter(), shape.longer()}}).second) {
        count += kernels_of_whole;
      }
    }
    for (const int rank : owner.square_ranks) {
      kernels[static_cast<std::size_t>(rank)] += kernels_of_square;
    }
  }
  // One kernel updates what is updated element by element.
  return (1 + *std::max_element(kernels.begin(), kernels.end())) * machine.launch_seconds;
}

double largest_shard(const Plan& plan) {
  std::vector<std::int64_t> length(static_cast<std::size_t>(plan.data), 0);
  for (const auto& bucket : plan.buckets) {
    for (std::size_t shard = 0; shard < length.size(); ++shard) {
      length[shard] += bucket.cuts[shard + 1] - bucket.cuts[shard];
    }
  }
  return static_cast<double>(*std::max_element(length.begin(), length.end()));
}

}  // namespace

double MachineSpeeds::data_bytes(int data, int tensor) const {
  const int in_node = std::max(1, gpus_per_node / tensor);
  if (data <= in_node) return node_bytes;
  return std::min(node_bytes, network_bytes * in_node);
}

std::string MachineSpeeds::text() const {
  return base::format(
      "products {:.0f} TFLOP/s, training {:.0f} TFLOP/s, memory {:.2f} TB/s, in a node {:.0f} "
      "GB/s, "
      "network {:.0f} GB/s a GPU, {} GPUs a node, collective {:.0f} us, kernel {:.0f} us",
      product_flops / 1e12, training_flops / 1e12, memory_bytes / 1e12, node_bytes / 1e9,
      network_bytes / 1e9, gpus_per_node, collective_seconds * 1e6, launch_seconds * 1e6);
}

MachineSpeeds speeds_of_cpus() {
  MachineSpeeds machine;
  machine.product_flops = 104e9;
  machine.training_flops = 60e9;
  machine.memory_bytes = 10e9;
  machine.node_bytes = 5e9;
  machine.network_bytes = 1e9;
  machine.gpus_per_node = 32;
  machine.collective_seconds = 50e-6;
  machine.launch_seconds = 1e-6;
  machine.ragged = RaggedCollectives::as_equal;
  machine.gathers = Gathers::at_once;
  return machine;
}

double StepWork::training_seconds(const MachineSpeeds& machine, int ranks) const {
  return 6 * parameters * tokens / ranks / machine.training_flops;
}

double gather_seconds(const Plan& plan, const StepWork& work, const MachineSpeeds& machine) {
  double seconds = 0;
  for (const auto& bucket : plan.buckets) {
    seconds += collective_seconds(plan, bucket, work.parameter_bytes, machine);
  }
  return seconds;
}

StepPrice price(const Plan& plan, std::span<const OwnedTensor> tensors, const StepWork& work,
                const MachineSpeeds& machine) {
  StepPrice price;
  price.reduce = exposed_reduction(plan, tensors, work, machine);
  price.compute =
      makespan(plan, tensors, machine) + largest_shard(plan) * update_bytes / machine.memory_bytes;
  price.exchange = tensor_exchange_seconds(plan, tensors, price.compute, work, machine) +
                   column_exchange_seconds(plan, tensors, work, machine);
  price.launch = launch_seconds(plan, tensors, machine);
  price.gather = exposed_gather(plan, tensors, work, machine);
  return price;
}

Plan plan_of_adamw(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  std::vector<std::int64_t> sizes;
  for (const auto& tensor : tensors) sizes.push_back(tensor.held_elements);
  const auto flat =
      layout::flat_layout(sizes, options.data, options.bucket_elements, options.alignment);
  Plan plan;
  plan.data = options.data;
  plan.tensor = options.tensor;
  plan.load.assign(static_cast<std::size_t>(plan.ranks()), 0.0);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    plan.elements += sizes[tensor];
    if (sizes[tensor] > 0) {
      plan.pieces.push_back({tensor, 0, sizes[tensor], flat.tensors[tensor].begin});
    }
  }
  for (std::size_t bucket = 0; bucket < flat.buckets.size(); ++bucket) {
    plan.buckets.push_back({flat.buckets[bucket], {flat.buckets[bucket].begin}});
    for (int shard = 0; shard < options.data; ++shard) {
      plan.buckets.back().cuts.push_back(flat.shard_of_bucket(bucket, shard).end);
    }
  }
  return plan;
}

double exchange_bytes(const Plan& plan, std::span<const OwnedTensor> tensors, int parameter_bytes) {
  double bytes = 0;
  for (const auto& owner : plan.matrices) {
    const auto& tensor = tensors[owner.tensor];
    const double both_ways = gradient_bytes + parameter_bytes;
    const auto n = static_cast<double>(tensor.shape.shorter());
    if (plan.tensor > 1) {
      bytes += both_ways * n * static_cast<double>(tensor.shape.longer()) * (plan.tensor - 1) /
               plan.tensor;
    }
    for (std::size_t sharer = 0; sharer < owner.ranges.size(); ++sharer) {
      bytes += 2 * parameter_bytes * elements_sent(tensor, owner, sharer);
    }
    for (const int rank : owner.square_ranks) {
      for (const auto& range : owner.ranges) {
        if (range.rank != rank) bytes += both_ways * n * n;
      }
    }
  }
  return bytes;
}

}  // namespace trireme::ownership
