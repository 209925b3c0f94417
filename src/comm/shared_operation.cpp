#include "shared_operation.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "arguments.hpp"
#include "ordered_sum.hpp"

#include <algorithm>

namespace trireme::comm {
namespace {

/// What a core adds up and passes on at once.
constexpr std::size_t nearest_cache = std::size_t{8} << 10;

const char* name(SharedPlan::Kind kind) {
  switch (kind) {
    case SharedPlan::Kind::all_reduce:
    case SharedPlan::Kind::small_all_reduce:
      return "all_reduce";
    case SharedPlan::Kind::reduce_scatter:
      return "reduce_scatter";
    case SharedPlan::Kind::all_gather:
      return "all_gather";
    case SharedPlan::Kind::all_to_all:
      return "all_to_all";
    case SharedPlan::Kind::broadcast:
      return "broadcast";
    case SharedPlan::Kind::barrier:
      return "barrier";
  }
  return "nothing known";
}

}  // namespace

SharedOperation::SharedOperation(Progress& progress, const OperationLabel& label,
                                 SharedLanes& lanes, SharedPlan plan, Rounds first)
    : PendingOperation(progress, label),
      lanes_(lanes),
      plan_(std::move(plan)),
      first_(first),
      inputs_(static_cast<std::size_t>(lanes.size())) {}

bool SharedOperation::advance() {
  bool moved = false;
  while (step()) moved = true;
  if (exchange_sent_ == plan_.exchange_rounds && exchange_taken_ == plan_.exchange_rounds &&
      spread_sent_ == plan_.spread_rounds && spread_taken_ == plan_.spread_rounds) {
    finish();
    moved = true;
  }
  return moved;
}

bool SharedOperation::step() {
  // Results first, while they are in a cache; then what lets peers go on.
  return send_spread() || take_spread() || send_exchange() || take_exchange();
}

Signature SharedOperation::own_signature() const {
  return {label().number, plan_.total_bytes, static_cast<std::uint64_t>(plan_.kind)};
}

void SharedOperation::sign(Lane lane, std::uint64_t round) {
  lanes_.signature(lane, lanes_.self(), round) = own_signature();
}

void SharedOperation::check_signatures(Lane lane, std::uint64_t round) const {
  for (int peer = 0; peer < lanes_.size(); ++peer) {
    if (peer == lanes_.self()) continue;
    const auto theirs = lanes_.signature(lane, peer, round);
    if (theirs == own_signature()) continue;
    throw base::Error(
        base::ExitCode::internal,
        base::format("{} of {} bytes meets {} number {} of {} bytes on rank {} (all ranks of a "
                     "group must call the same collectives); this is a defect of Trireme, please "
                     "report it",
                     text(), plan_.total_bytes, name(static_cast<SharedPlan::Kind>(theirs.kind)),
                     theirs.number, theirs.bytes, member(peer).value()));
  }
}

std::size_t SharedOperation::length_at(int position, std::size_t begin, std::size_t piece) const {
  const auto bytes = plan_.part_bytes(position);
  return begin >= bytes ? 0 : std::min(piece, bytes - begin);
}

void SharedOperation::put(std::byte* to, const std::byte* from, std::size_t count) const {
  store_bytes(plan_.into_arrays, to, from, count);
}

bool SharedOperation::send_exchange() {
  const auto round = first_.exchange + exchange_sent_;
  if (exchange_sent_ == plan_.exchange_rounds || !lanes_.may_send(Lane::exchange, round)) {
    return false;
  }
  const auto begin = exchange_sent_ * plan_.exchange_piece;
  // Each rank begins with the next one, so that not all read the same memory at once.
  for (int distance = 1; distance < lanes_.size(); ++distance) {
    const int peer = (lanes_.self() + distance) % lanes_.size();
    store_bytes(plan_.into_slots, lanes_.exchange_slot(lanes_.self(), round, peer),
                plan_.from + plan_.begins[static_cast<std::size_t>(peer)] + begin,
                length_at(peer, begin, plan_.exchange_piece));
  }
  if (exchange_sent_ == 0) sign(Lane::exchange, round);
  lanes_.sent(Lane::exchange, round);
  ++exchange_sent_;
  return true;
}

bool SharedOperation::take_exchange() {
  const auto round = first_.exchange + exchange_taken_;
  if (exchange_taken_ == plan_.exchange_rounds || !lanes_.may_take(Lane::exchange, round)) {
    return false;
  }
  if (exchange_taken_ == 0) check_signatures(Lane::exchange, round);
  const auto begin = exchange_taken_ * plan_.exchange_piece;
  const auto length = length_at(lanes_.self(), begin, plan_.exchange_piece);
  switch (plan_.arrival) {
    case SharedPlan::Arrival::reduce:
      if (length > 0) reduce_pieces(round, begin, length);
      break;
    case SharedPlan::Arrival::place:
      for (int distance = 1; distance < lanes_.size(); ++distance) {
        const int peer = (lanes_.self() + distance) % lanes_.size();
        put(plan_.out + plan_.begins[static_cast<std::size_t>(peer)] + begin,
            lanes_.exchange_slot(peer, round, lanes_.self()), length);
      }
      break;
  }
  lanes_.taken(Lane::exchange, round);
  ++exchange_taken_;
  return true;
}

void SharedOperation::reduce_pieces(std::uint64_t round, std::size_t begin, std::size_t length) {
  const auto self = static_cast<std::size_t>(lanes_.self());
  const auto spread = first_.spread + spread_sent_;
  // Sums go to the slot that spreads them while they are in the nearest cache, if it is free.
  const bool spreads = spread_sent_ == exchange_taken_ && spread_sent_ < plan_.spread_rounds &&
                       lanes_.may_send(Lane::spread, spread);
  const auto step = spreads ? nearest_cache : length;
  for (std::size_t at = 0; at < length; at += step) {
    for (int peer = 0; peer < lanes_.size(); ++peer) {
      inputs_[static_cast<std::size_t>(peer)] =
          lanes_.exchange_slot(peer, round, lanes_.self()) + at;
    }
    inputs_[self] = plan_.from + plan_.begins[self] + begin + at;
    auto* const sums = plan_.out + begin + at;
    const auto bytes = std::min(step, length - at);
    reduce_in_order(plan_.op, plan_.dtype, inputs_, sums,
                    static_cast<std::int64_t>(bytes / device::size_of(plan_.dtype)));
    if (spreads) {
      store_bytes(plan_.into_slots, lanes_.spread_slot(lanes_.self(), spread) + at, sums, bytes);
    }
  }
  if (spreads) tell_spread(spread);
}

void SharedOperation::tell_spread(std::uint64_t round) {
  if (spread_sent_ == 0) sign(Lane::spread, round);
  lanes_.sent(Lane::spread, round);
  ++spread_sent_;
}

bool SharedOperation::send_spread() {
  const auto round = first_.spread + spread_sent_;
  if (spread_sent_ == plan_.spread_rounds || !lanes_.may_send(Lane::spread, round)) return false;
  // Results of an exchange are spread as they come.
  if (plan_.exchange_rounds > 0 && exchange_taken_ <= spread_sent_) return false;
  const auto begin = spread_sent_ * plan_.spread_piece;
  const auto self = lanes_.self();
  store_bytes(plan_.into_slots, lanes_.spread_slot(self, round),
              plan_.whole + plan_.begins[static_cast<std::size_t>(self)] + begin,
              length_at(self, begin, plan_.spread_piece));
  tell_spread(round);
  return true;
}

bool SharedOperation::take_spread() {
  const auto round = first_.spread + spread_taken_;
  if (spread_taken_ == plan_.spread_rounds || spread_sent_ <= spread_taken_ ||
      !lanes_.may_take(Lane::spread, round)) {
    return false;
  }
  if (spread_taken_ == 0) check_signatures(Lane::spread, round);
  const auto begin = spread_taken_ * plan_.spread_piece;
  if (plan_.kind == SharedPlan::Kind::small_all_reduce) {
    combine_small(round);
  } else {
    for (int distance = 1; distance < lanes_.size(); ++distance) {
      const int peer = (lanes_.self() + distance) % lanes_.size();
      put(plan_.whole + plan_.begins[static_cast<std::size_t>(peer)] + begin,
          lanes_.spread_slot(peer, round), length_at(peer, begin, plan_.spread_piece));
    }
  }
  lanes_.taken(Lane::spread, round);
  ++spread_taken_;
  return true;
}

void SharedOperation::combine_small(std::uint64_t round) {
  for (int peer = 0; peer < lanes_.size(); ++peer) {
    inputs_[static_cast<std::size_t>(peer)] = lanes_.spread_slot(peer, round);
  }
  // Not this rank's own slot: once peers have taken it, a later operation may have filled it anew.
  inputs_[static_cast<std::size_t>(lanes_.self())] = plan_.whole;
  reduce_in_order(plan_.op, plan_.dtype, inputs_, plan_.out,
                  static_cast<std::int64_t>(plan_.total_bytes / device::size_of(plan_.dtype)));
}

std::vector<base::Rank> SharedOperation::missing() const {
  std::vector<int> positions;
  if (exchange_taken_ < plan_.exchange_rounds) {
    positions = lanes_.not_sent(Lane::exchange, first_.exchange + exchange_taken_);
  }
  if (positions.empty() && spread_taken_ < plan_.spread_rounds) {
    positions = lanes_.not_sent(Lane::spread, first_.spread + spread_taken_);
  }
  // Everything has come: peers have not taken what this rank wants to send.
  const auto exchange_round = first_.exchange + exchange_sent_;
  if (positions.empty() && exchange_sent_ < plan_.exchange_rounds &&
      exchange_round >= SharedLanes::slots) {
    positions = lanes_.not_taken(Lane::exchange, exchange_round - SharedLanes::slots);
  }
  const auto spread_round = first_.spread + spread_sent_;
  if (positions.empty() && spread_sent_ < plan_.spread_rounds &&
      spread_round >= SharedLanes::slots) {
    positions = lanes_.not_taken(Lane::spread, spread_round - SharedLanes::slots);
  }
  std::vector<base::Rank> ranks;
  for (const int position : positions) ranks.push_back(member(position));
  return ranks;
}

}  // namespace trireme::comm
