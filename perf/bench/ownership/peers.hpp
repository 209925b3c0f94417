// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include <span>
#include <vector>

/// Own implementations of what others publish, for comparison.
namespace trireme::bench {

/// Unit that an owner takes as a whole: a matrix, or fused ones.
struct Unit {
  int layer = 0;
  double flops = 0;
  double elements = 0;
  /// Longer side times the square of the shorter: what Megatron balances.
  double megatron_cost = 0;
};

/// Loads of each rank.
using Loads = std::vector<double>;
double max_over_mean(const Loads& loads);

/// In rounds over the ranks, forth and back, the largest units first.
Loads snake(std::span<const Unit> units, int ranks);
/// Longest processing time first (Graham 1969).
Loads longest_first(std::span<const Unit> units, int ranks);
/// Index of each unit's rank: ranges that end at the first border behind equal parts of the
/// elements (Canzona, arXiv 2602.06079, as its published code cuts).
std::vector<int> contiguous_owners(std::span<const Unit> units, int ranks);
Loads contiguous(std::span<const Unit> units, int ranks);
/// Index of each unit's rank: forth and back over the ranks, the units with fewest elements first
/// (Megatron-LM's LayerWiseDistributedOptimizer).
std::vector<int> ping_pong_owners(std::span<const Unit> units, int ranks);
/// Whole layers in turn.
Loads layer_wise(std::span<const Unit> units, int ranks);
/// Index of each unit's rank in Canzona's plan over data x tensor: contiguous ranges over dp,
/// longest first inside each tensor-parallel group.
std::vector<int> canzona_owners(std::span<const Unit> units, int data, int tensor);
Loads canzona(std::span<const Unit> units, int data, int tensor);

struct Megatron {
  Loads loads;
  /// Padding per element, its matrices alone.
  double padding = 0;
  int buckets = 0;
};
/// Longest first by megatron_cost inside buckets, loads carried, into equal padded shards
/// (Megatron-LM's main branch). Buckets have at least max(40M, 1M x ranks) elements, and as many
/// more as keep padding below 30 %; one bucket where nothing does.
Megatron megatron(std::span<const Unit> units, int ranks);

}  // namespace trireme::bench
