// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::bench {
namespace {

std::vector<std::size_t> by_cost(std::span<const Unit> units, double Unit::*cost) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return units[a].*cost > units[b].*cost; });
  return order;
}

Loads no_loads(int ranks) {
  return Loads(static_cast<std::size_t>(ranks), 0.0);
}

std::size_t least(const Loads& loads) {
  return static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
}

}  // namespace

double max_over_mean(const Loads& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum;
}

Loads snake(std::span<const Unit> units, int ranks) {
  auto loads = no_loads(ranks);
  std::size_t turn = 0;
  for (const auto at : by_cost(units, &Unit::flops)) {
    const auto round = turn / loads.size();
    const auto place = turn % loads.size();
    loads[round % 2 == 0 ? place : loads.size() - 1 - place] += units[at].flops;
    ++turn;
  }
  return loads;
}

Loads longest_first(std::span<const Unit> units, int ranks) {
  auto loads = no_loads(ranks);
  for (const auto at : by_cost(units, &Unit::flops)) loads[least(loads)] += units[at].flops;
  return loads;
}

std::vector<int> contiguous_owners(std::span<const Unit> units, int ranks) {
  double all = 0;
  for (const auto& unit : units) all += unit.elements;
  std::vector<int> owners;
  double before = 0;
  int owner = 0;
  for (const auto& unit : units) {
    // A part ends at the first border that is not before it.
    while (owner + 1 < ranks && before >= all * (owner + 1) / ranks) ++owner;
    owners.push_back(owner);
    before += unit.elements;
  }
  return owners;
}

Loads contiguous(std::span<const Unit> units, int ranks) {
  return canzona(units, ranks, 1);
}

std::vector<int> ping_pong_owners(std::span<const Unit> units, int ranks) {
  auto order = by_cost(units, &Unit::elements);
  std::reverse(order.begin(), order.end());
  std::vector<int> owners(units.size());
  int turn = 0;
  for (const auto at : order) {
    const int place = turn++ % (2 * ranks);
    owners[at] = place < ranks ? place : 2 * ranks - 1 - place;
  }
  return owners;
}

Loads layer_wise(std::span<const Unit> units, int ranks) {
  auto loads = no_loads(ranks);
  for (const auto& unit : units) loads[static_cast<std::size_t>(unit.layer % ranks)] += unit.flops;
  return loads;
}

std::vector<int> canzona_owners(std::span<const Unit> units, int data, int tensor) {
  auto owners = contiguous_owners(units, data);
  std::vector<Loads> groups(static_cast<std::size_t>(data), no_loads(tensor));
  for (const auto at : by_cost(units, &Unit::flops)) {
    auto& group = groups[static_cast<std::size_t>(owners[at])];
    const auto member = least(group);
    group[member] += units[at].flops;
    owners[at] = owners[at] * tensor + static_cast<int>(member);
  }
  return owners;
}

Loads canzona(std::span<const Unit> units, int data, int tensor) {
  const auto owners = canzona_owners(units, data, tensor);
  auto loads = no_loads(data * tensor);
  for (std::size_t at = 0; at < units.size(); ++at) {
    loads[static_cast<std::size_t>(owners[at])] += units[at].flops;
  }
  return loads;
}

namespace {

Megatron megatron_with(std::span<const Unit> units, int ranks, double bucket_elements) {
  Megatron result{no_loads(ranks), 0, 0};
  auto carried = no_loads(ranks);
  std::vector<Unit> bucket;
  double size = 0;
  double all = 0;
  double padded = 0;
  const auto close = [&] {
    auto shards = no_loads(ranks);
    for (const auto at : by_cost(bucket, &Unit::megatron_cost)) {
      const auto rank = least(carried);
      carried[rank] += bucket[at].megatron_cost;
      result.loads[rank] += bucket[at].flops;
      shards[rank] += bucket[at].elements;
    }
    padded += *std::max_element(shards.begin(), shards.end()) * ranks;
    ++result.buckets;
    bucket.clear();
    size = 0;
  };
  for (const auto& unit : units) {
    bucket.push_back(unit);
    size += unit.elements;
    all += unit.elements;
    if (size >= bucket_elements) close();
  }
  if (!bucket.empty()) close();
  result.padding = padded / all - 1;
  return result;
}

}  // namespace

Megatron megatron(std::span<const Unit> units, int ranks) {
  for (double elements = std::max(40e6, 1e6 * ranks);; elements *= 2) {
    auto result = megatron_with(units, ranks, elements);
    if (result.padding <= 0.3 || result.buckets == 1) return result;
  }
}

}  // namespace trireme::bench
