// SPDX-License-Identifier: Apache-2.0
#include "state_ring.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <utility>

namespace trireme::optim {

using device::Guest;
using device::Tensor;

namespace {

/// Elements of state begin chunks at multiples of this: as aligned in slots as at home.
constexpr std::int64_t aligned_elements = device::Arena::alignment / sizeof(float);

constexpr std::int64_t rounded_up(std::int64_t elements) {
  return (elements + aligned_elements - 1) / aligned_elements * aligned_elements;
}

/// Elements of a segment from `begin` to `end` of the state.
Segment part_of(const Segment& segment, std::int64_t begin, std::int64_t end) {
  auto part = segment;
  const auto before = begin - segment.state_begin;
  part.flat = {segment.flat.begin + before, segment.flat.begin + end - segment.state_begin};
  part.state_begin = begin;
  part.place.begin += before;
  return part;
}

}  // namespace

StateRing::StateRing(const OptimizerState& state, std::int64_t elements,
                     const StateOffload& offload, device::Arena& arena)
    : state_(state), offload_(offload) {
  TRIREME_EXPECT(state.matrix_rule() == nullptr, "rules for matrices have whole ones at hand");
  if (state.has_masters()) homes_.push_back(state.master({.flat = {0, elements}}));
  for (const auto& each : state.all()) homes_.push_back(each.values);
  const auto bytes_of_element = std::ssize(homes_) * std::int64_t{sizeof(float)};
  const auto most = offload.chunk_bytes / bytes_of_element / aligned_elements * aligned_elements;
  chunk_elements_ = std::min(std::max(most, aligned_elements), rounded_up(elements));
  cut(elements);
  while (slots_.size() < std::min(slot_count, chunks_.size())) {
    auto& slot = slots_.emplace_back();
    for (std::size_t column = 0; column < homes_.size(); ++column) {
      slot.columns.push_back(arena.allocate(device::DType::f32, {chunk_elements_}));
    }
  }
}

void StateRing::cut(std::int64_t elements) {
  for (std::int64_t begin = 0; begin < elements; begin += chunk_elements_) {
    chunks_.push_back({begin, std::min(chunk_elements_, elements - begin), {}});
  }
  for (const auto& segment : state_.segments()) {
    const auto end = segment.state_begin + segment.flat.size();
    for (auto begin = segment.state_begin; begin < end;) {
      auto& chunk = chunks_[static_cast<std::size_t>(begin / chunk_elements_)];
      const auto part_end = std::min(end, chunk.begin + chunk.count);
      chunk.segments.push_back(part_of(segment, begin, part_end));
      begin = part_end;
    }
  }
}

std::vector<Guest> StateRing::guests(const Slot& slot, const Chunk& chunk, Pass pass) const {
  std::vector<Guest> guests;
  const auto count = pass == Pass::masters ? 1 : homes_.size();
  for (std::size_t column = 0; column < count; ++column) {
    guests.push_back({homes_[column].slice(0, chunk.begin, chunk.count),
                      slot.columns[column].slice(0, 0, chunk.count)});
  }
  return guests;
}

StateRing::Run StateRing::run_of(const Slot& slot, const Chunk& chunk, const Segment& segment,
                                 Pass pass) const {
  const auto in_slot = [&](const Tensor& column) {
    return column.slice(0, segment.state_begin - chunk.begin, segment.flat.size());
  };
  const std::size_t masters = state_.has_masters() ? 1 : 0;
  Run run{segment, masters > 0 ? in_slot(slot.columns.front()) : state_.master(segment), {}};
  if (pass == Pass::masters) return run;
  for (auto column = masters; column < slot.columns.size(); ++column) {
    run.states.push_back(in_slot(slot.columns[column]));
  }
  return run;
}

void StateRing::pass(Pass pass, const Act& act) {
  auto& tier = offload_.tier;
  const auto fetch = [&](std::size_t index) {
    if (index >= chunks_.size()) return;
    auto& slot = slots_[index % slots_.size()];
    slot.fetched = tier.fetch(guests(slot, chunks_[index], pass), slot.free);
  };
  for (std::size_t index = 0; index < slots_.size(); ++index) fetch(index);
  for (std::size_t index = 0; index < chunks_.size(); ++index) {
    const auto& chunk = chunks_[index];
    auto& slot = slots_[index % slots_.size()];
    tier.follow(slot.fetched);
    for (const auto& segment : chunk.segments) act(run_of(slot, chunk, segment, pass));
    slot.free = tier.record();
    if (pass == Pass::update) slot.free = tier.store(guests(slot, chunk, pass), slot.free);
    fetch(index + slots_.size());
  }
}

void StateRing::read(const Tensor& home, const std::function<void(const Tensor&)>& act) {
  auto& tier = offload_.tier;
  const auto values = home.flat();
  for (std::int64_t begin = 0; begin < values.element_count(); begin += chunk_elements_) {
    const auto count = std::min(chunk_elements_, values.element_count() - begin);
    auto& slot = slots_.front();
    const Guest guest{values.slice(0, begin, count), slot.columns.front().slice(0, 0, count)};
    tier.follow(tier.fetch({&guest, 1}, slot.free));
    act(guest.place);
    slot.free = tier.record();
  }
}

}  // namespace trireme::optim
