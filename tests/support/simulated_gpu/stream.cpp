// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/stream.hpp"

#include <algorithm>
#include <utility>

namespace trireme::testing::simulated_gpu {

Order::Order(std::uint64_t seed) : random_(seed), haste_(static_cast<Haste>(seed % 3)) {}

std::size_t Order::below(std::size_t count) {
  return static_cast<std::size_t>(random_() % count);
}

void Order::issue(CUstream_st& stream, Work work, std::shared_ptr<const Completion> after) {
  stream.items.push_back({std::move(work), std::move(after)});
}

std::shared_ptr<const Completion> Order::mark(CUstream_st& stream) {
  auto end = std::make_shared<Completion>();
  issue(stream, [end] {
    end->done = true;
    end->when = Clock::now();
  });
  stream.last = end;
  return end;
}

/// One item of some stream, of those that are not held back if one of them can go on.
bool Order::step(const std::vector<CUstream_st*>& held_back) {
  std::vector<CUstream_st*> ready;
  std::vector<CUstream_st*> preferred;
  for (auto* const stream : streams_) {
    if (stream->items.empty() || !stream->items.front().ready()) continue;
    ready.push_back(stream);
    if (std::find(held_back.begin(), held_back.end(), stream) == held_back.end()) {
      preferred.push_back(stream);
    }
  }
  if (ready.empty()) return false;
  const auto& from = preferred.empty() ? ready : preferred;
  auto& items = from[below(from.size())]->items;
  const auto item = std::move(items.front());
  items.pop_front();
  item.work();
  return true;
}

bool Order::stirs() {
  return haste_ == Haste::eager || (haste_ == Haste::mixed && below(4) == 0);
}

void Order::stir() {
  if (haste_ == Haste::eager) return run_all();
  go_on();
}

void Order::go_on() {
  for (auto steps = 1 + below(4); steps > 0 && step({}); --steps) {
  }
}

void Order::run_until(const std::function<bool()>& done) {
  std::vector<CUstream_st*> held_back;
  for (auto* const stream : streams_) {
    if (below(2) == 0) held_back.push_back(stream);
  }
  while (!done() && step(held_back)) {
  }
}

void Order::run_all() {
  while (step({})) {
  }
}

std::vector<std::size_t> Order::order_of(const std::vector<Node>& nodes) {
  std::vector<std::size_t> missing;
  std::vector<std::vector<std::size_t>> next(nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    missing.push_back(nodes[number].after.size());
    for (const auto before : nodes[number].after) next[before].push_back(number);
    if (missing.back() == 0) ready.push_back(number);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    std::swap(ready[below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const auto number : next[order.back()]) {
      if (--missing[number] == 0) ready.push_back(number);
    }
  }
  return order;
}

}  // namespace trireme::testing::simulated_gpu
