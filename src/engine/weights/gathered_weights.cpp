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
      slots_(units.slot_count()),
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
  for (auto& slot : slots_) await(slot);
}

void GatheredWeights::parameters_changed() {
  for (auto& slot : slots_) {
    await(slot);
    slot.unit.reset();
  }
}

void GatheredWeights::poll() {
  for (auto& slot : slots_) {
    for (auto& work : slot.works) work.poll();
  }
}

void GatheredWeights::gather(std::size_t unit) {
  auto& slot = slot_of(unit);
  TRIREME_EXPECT(slot.leases == 0, "a slot is free while no pass reads what it holds");
  await(slot);
  slot.unit = unit;
  const auto& flat = sharding_.stage().flat();
  for (const auto bucket : units_.all()[unit].buckets) {
    const auto place = units_.place_of(bucket);
    const auto whole = shards_.ring.slice(0, place.begin, place.size());
    gathered_bytes_ += whole.byte_count();
    slot.works.push_back(data_.start_all_gather(shards_.values.of(shards_.held[bucket]), whole,
                                                flat.cuts_of_bucket(bucket)));
  }
}

void GatheredWeights::await(Slot& slot) {
  if (slot.works.empty()) return;
  const DropOnFailure guard(slot.works);
  waited_->start();
  for (auto& work : slot.works) work.wait_on_stream();
  waited_->stop();
  slot.works.clear();
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
    auto& slot = slot_of(unit);
    if (slot.unit != unit) gather(unit);
    await(slot);
    ++slot.leases;
  }
  gather_ahead();
}

void GatheredWeights::release(const Place& place, Pass pass) {
  if (!reads_weights(place, pass)) return;
  graphs_.outside([this, place] {
    for (const auto unit : units_.of(place)) --slot_of(unit).leases;
    // Where the next place was acquired first, its successor may have waited for this slot.
    if (now_ < order_.size() && order_[now_] != place) gather_ahead();
  });
}

/// Order: the same on all data-parallel ranks, whose passes are the same.
void GatheredWeights::gather_ahead() {
  // Slots of units that are there, and read before what comes next.
  std::vector<bool> taken(slots_.size(), false);
  const auto end = std::min(order_.size(), now_ + 1 + slots_.size());
  for (auto index = now_ + 1; index < end; ++index) {
    bool gathers = false;
    for (const auto unit : units_.of(order_[index])) {
      const auto number = units_.all()[unit].slot;
      if (slots_[number].unit != unit) {
        if (taken[number] || slots_[number].leases > 0) return;
        gather(unit);
        gathers = true;
      } else if (!slots_[number].works.empty()) {
        return;
      }
      taken[number] = true;
    }
    if (gathers) return;
  }
}

}  // namespace trireme::engine
