// SPDX-License-Identifier: Apache-2.0
#include "gathered_weights.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"

#include "drop_on_failure.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace trireme::engine {

using layers::Pass;
using model::Place;

namespace {

/// Gradients of matrices come from activations alone, and the embedding's are no product.
bool reads_weights(const Place& place, Pass pass) {
  if (pass == Pass::backward_weight) return false;
  return pass == Pass::forward || place.kind != Place::Kind::embedding;
}

}  // namespace

std::vector<Place> reading_order(const std::vector<layout::Action>& actions,
                                 const std::vector<std::vector<Place>>& chunks,
                                 layout::Passes passes) {
  std::vector<Place> order;
  const auto add = [&](const Place& place) {
    if (order.empty() || order.back() != place) order.push_back(place);
  };
  for (const auto& action : actions) {
    const auto& places = chunks[static_cast<std::size_t>(action.virtual_stage)];
    if (action.kind == layout::ActionKind::forward) {
      std::for_each(places.begin(), places.end(), add);
      continue;
    }
    const bool reads =
        passes == layout::Passes::both && action.kind != layout::ActionKind::backward_weight;
    if (!reads) continue;
    std::for_each(places.rbegin(), places.rend(), [&](const Place& place) {
      if (place.kind == Place::Kind::layer) add(place);
    });
  }
  return order;
}

GatheredWeights::GatheredWeights(const sharding::Sharding& sharding, const Units& units,
                                 comm::ProcessGroup& data, Shards shards, Graphs& graphs,
                                 device::Device& device)
    : sharding_(sharding),
      units_(units),
      data_(data),
      shards_(std::move(shards)),
      graphs_(graphs),
      held_(units.all().size()),
      waited_(device.stopwatch()) {}

GatheredWeights::~GatheredWeights() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    finish();
  } catch (const base::Error& error) {
    base::log::local::error("engine", "at the end of an engine: {}", error.what());
  }
}

void GatheredWeights::begin(std::vector<Place> order) {
  order_ = std::move(order);
  now_ = 0;
  gathered_bytes_ = 0;
}

void GatheredWeights::finish() {
  order_.clear();
  for (auto& held : held_) await(held);
}

void GatheredWeights::parameters_changed() {
  for (auto& held : held_) {
    await(held);
    held.is_there = false;
  }
}

void GatheredWeights::poll() {
  for (auto& held : held_) {
    for (auto& work : held.works) work.poll();
  }
}

void GatheredWeights::gather(std::size_t unit) {
  for (const auto other : units_.beside(unit)) {
    auto& before = held_[other];
    TRIREME_EXPECT(before.leases == 0, "a place is free while no pass reads what it holds");
    await(before);
    before.is_there = false;
  }
  auto& held = held_[unit];
  held.is_there = true;
  const auto& flat = sharding_.stage().flat();
  for (const auto bucket : units_.all()[unit].buckets) {
    const auto place = units_.place_of(bucket);
    const auto whole = shards_.ring.slice(0, place.begin, place.size());
    gathered_bytes_ += whole.byte_count();
    held.works.push_back(data_.start_all_gather(shards_.values.of(shards_.held[bucket]), whole,
                                                flat.cuts_of_bucket(bucket)));
  }
}

void GatheredWeights::await(Held& held) {
  if (held.works.empty()) return;
  const DropOnFailure guard(held.works);
  waited_->start();
  for (auto& work : held.works) work.wait_on_stream();
  waited_->stop();
  held.works.clear();
}

void GatheredWeights::acquire(const Place& place, Pass pass) {
  const bool reads = reads_weights(place, pass);
  const bool prepares = pass != Pass::forward && prepare_;
  if (!reads && !prepares) return;
  graphs_.outside([this, place, reads, prepares] {
    if (prepares) prepare_(place);
    if (reads) lease(place);
  });
}

void GatheredWeights::lease(const Place& place) {
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>(std::min(now_, order_.size()));
  const auto found = std::find(from, order_.end(), place);
  if (found != order_.end()) now_ = static_cast<std::size_t>(found - order_.begin());
  for (const auto unit : units_.of(place)) {
    if (!held_[unit].is_there) gather(unit);
  }
  for (const auto unit : units_.of(place)) {
    await(held_[unit]);
    ++held_[unit].leases;
  }
  gather_ahead();
}

void GatheredWeights::release(const Place& place, Pass pass) {
  if (!reads_weights(place, pass)) return;
  graphs_.outside([this, place] {
    for (const auto unit : units_.of(place)) --held_[unit].leases;
    // Where the next place was acquired first, its successor may have waited for this memory.
    if (now_ < order_.size() && order_[now_] != place) gather_ahead();
  });
}

/// Order: the same on all data-parallel ranks, whose passes are the same.
void GatheredWeights::gather_ahead() {
  // Layers have two places: what is read behind the next but one has none.
  constexpr std::size_t most_ahead = 3;
  // Units that are read before what comes next.
  std::vector<bool> taken(held_.size(), false);
  const auto is_free = [&](std::size_t unit) {
    const auto& beside = units_.beside(unit);
    return std::none_of(beside.begin(), beside.end(),
                        [&](std::size_t other) { return held_[other].leases > 0 || taken[other]; });
  };
  const auto end = std::min(order_.size(), now_ + 1 + most_ahead);
  for (auto index = now_ + 1; index < end; ++index) {
    bool all_there = true;
    for (const auto unit : units_.of(order_[index])) {
      if (!held_[unit].is_there && is_free(unit)) gather(unit);
      all_there = all_there && held_[unit].is_there && held_[unit].works.empty();
      taken[unit] = true;
    }
    if (!all_there) return;
  }
}

}  // namespace trireme::engine
