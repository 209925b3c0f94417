// SPDX-License-Identifier: Apache-2.0
#include "layout/ownership/alignment.hpp"
#include "layout/ownership/assignments.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trireme::layout {
namespace {

class ContiguousCuts {
 public:
  ContiguousCuts(std::span<const OwnedTensor> tensors, const OwnershipOptions& options)
      : tensors_(tensors), options_(options) {
    const auto shards = static_cast<std::size_t>(options.data);
    shard_load_.assign(shards, 0.0);
    plan_.assignment = Assignment::contiguous;
    plan_.data = options.data;
    plan_.tensor = options.tensor;
    plan_.load.assign(shards * static_cast<std::size_t>(options.tensor), 0.0);
    for (const auto& tensor : tensors) {
      plan_.elements += tensor.held_elements;
      fair_load_ += tensor.flops / options.data;
    }
  }

  /// Tensors that may be cut anywhere lie in buckets of their own, in equal shards: a large one in
  /// front of the matrices, all others behind them.
  OwnershipPlan plan() && {
    std::vector<std::size_t> elementwise;
    std::vector<std::size_t> matrices;
    std::int64_t size = 0;
    for (std::size_t at = 0; at < tensors_.size(); ++at) {
      const auto& tensor = tensors_[at];
      if (tensor.begins_bucket) {
        close_ragged(matrices);
        close_equal(elementwise);
        size = 0;
      }
      if (!tensor.is_matrix()) {
        if (tensor.held_elements > 0) elementwise.push_back(at);
        const bool in_front = plan_.buckets.empty() && matrices.empty() &&
                              tensor.held_elements >= options_.bucket_elements;
        if (in_front) close_equal(elementwise);
        continue;
      }
      matrices.push_back(at);
      size += tensor.held_elements;
      const bool inside = at + 1 < tensors_.size() && tensors_[at + 1].joined;
      if (size >= options_.bucket_elements && !inside) {
        close_ragged(matrices);
        size = 0;
      }
    }
    close_ragged(matrices);
    close_equal(elementwise);
    own();
    return std::move(plan_);
  }

 private:
  std::int64_t held(std::size_t at) const {
    return aligned(tensors_[at].held_elements, options_.alignment);
  }

  std::int64_t place(const std::vector<std::size_t>& bucket) {
    const auto begin = plan_.size();
    auto end = begin;
    for (const auto at : bucket) {
      plan_.pieces.push_back({at, 0, tensors_[at].held_elements, end});
      end += held(at);
    }
    plan_.buckets.push_back({{begin, end}, {begin}});
    return end;
  }

  /// One cut for each shard but the last, at the border of matrices nearest to its share of the
  /// bucket's work: (1 - alpha) / R + alpha * deficit / sum of deficits.
  void close_ragged(std::vector<std::size_t>& bucket) {
    if (bucket.empty()) return;
    place(bucket);
    double work = 0;
    for (const auto at : bucket) work += tensors_[at].flops;
    const auto share = shares();
    std::size_t next = 0;  // matrix
    double before = 0;     // work of the matrices before it
    double wanted = 0;     // work of all shards so far
    auto position = plan_.buckets.back().flat.begin;
    for (int shard = 0; shard < options_.data; ++shard) {
      wanted += share[static_cast<std::size_t>(shard)] * work;
      const bool last = shard + 1 == options_.data;
      while (next < bucket.size() &&
             (last || before + tensors_[bucket[next]].flops / 2 <= wanted)) {
        const auto at = bucket[next++];
        before += tensors_[at].flops;
        shard_load_[static_cast<std::size_t>(shard)] += tensors_[at].flops;
        position += held(at);
        owned_.push_back({at, shard});
      }
      plan_.buckets.back().cuts.push_back(position);
    }
    plan_.buckets.back().flat.end = position;
    bucket.clear();
  }

  std::vector<double> shares() const {
    std::vector<double> deficit;
    for (const double load : shard_load_) deficit.push_back(std::max(0.0, fair_load_ - load));
    const double sum = std::accumulate(deficit.begin(), deficit.end(), 0.0);
    for (double& value : deficit) {
      const double balanced = sum > 0 ? value / sum : 1.0 / options_.data;
      value = (1 - options_.alpha) / options_.data + options_.alpha * balanced;
    }
    return deficit;
  }

  void close_equal(std::vector<std::size_t>& bucket) {
    if (bucket.empty()) return;
    const auto end = place(bucket);
    auto& [flat, cuts] = plan_.buckets.back();
    const auto length =
        aligned((end - flat.begin + options_.data - 1) / options_.data, options_.alignment);
    for (int shard = 1; shard <= options_.data; ++shard) {
      cuts.push_back(flat.begin + shard * length);
    }
    flat.end = cuts.back();
    bucket.clear();
  }

  /// Owners in the tensor-parallel group of each shard.
  void own() {
    for (int shard = 0; shard < options_.data; ++shard) {
      std::vector<std::size_t> matrices;
      for (const auto& [at, owner] : owned_) {
        if (owner == shard) matrices.push_back(at);
      }
      auto owners = own_in_tensor_group(tensors_, matrices, options_, shard, plan_.load);
      plan_.matrices.insert(plan_.matrices.end(), owners.begin(), owners.end());
    }
    std::sort(plan_.matrices.begin(), plan_.matrices.end(),
              [](const MatrixOwner& a, const MatrixOwner& b) { return a.tensor < b.tensor; });
    form_micro_groups(tensors_, options_, plan_);
  }

  struct Owned {
    std::size_t tensor;
    int shard;
  };

  std::span<const OwnedTensor> tensors_;
  const OwnershipOptions& options_;
  OwnershipPlan plan_;
  double fair_load_ = 0;
  std::vector<double> shard_load_;
  std::vector<Owned> owned_;
};

}  // namespace

OwnershipPlan plan_contiguous(std::span<const OwnedTensor> tensors,
                              const OwnershipOptions& options) {
  return ContiguousCuts(tensors, options).plan();
}

}  // namespace trireme::layout
