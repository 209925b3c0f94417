// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/operation.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "comm/core/ordered_sum.hpp"
#include "comm/core/tensor_checks.hpp"

#include <algorithm>

namespace trireme::comm {
namespace {

/// Bytes that a core adds up and passes on at once: they fit its nearest cache.
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

SharedOperation::SharedOperation(ProgressEngine& progress, const OperationLabel& label,
                                 SharedChannel& channel, SharedPlan plan, Rounds first)
    : PendingOperation(progress, label),
      channel_(channel),
      plan_(std::move(plan)),
      first_(first),
      inputs_(static_cast<std::size_t>(channel.size())) {}

bool SharedOperation::advance() {
  bool moved = false;
  while (step()) moved = true;
  if (scatter_sent_ == plan_.scatter_rounds && scatter_taken_ == plan_.scatter_rounds &&
      gather_sent_ == plan_.gather_rounds && gather_taken_ == plan_.gather_rounds) {
    finish();
    moved = true;
  }
  return moved;
}

bool SharedOperation::step() {
  // Order: results first, while they are in a cache; then sends, which let peers go on.
  return send_gather() || take_gather() || send_scatter() || take_scatter();
}

Signature SharedOperation::own_signature() const {
  return {label().number, plan_.total_bytes, static_cast<std::uint64_t>(plan_.kind)};
}

void SharedOperation::sign(Phase phase, std::uint64_t round) {
  channel_.signature(phase, channel_.self(), round) = own_signature();
}

void SharedOperation::check_signatures(Phase phase, std::uint64_t round) const {
  for (int peer = 0; peer < channel_.size(); ++peer) {
    if (peer == channel_.self()) continue;
    const auto theirs = channel_.signature(phase, peer, round);
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

bool SharedOperation::send_scatter() {
  const auto round = first_.scatter + scatter_sent_;
  if (scatter_sent_ == plan_.scatter_rounds || !channel_.may_send(Phase::scatter, round)) {
    return false;
  }
  const auto begin = scatter_sent_ * plan_.scatter_piece;
  // Order: each rank begins with the next one, so that not all read the same memory at once.
  for (int distance = 1; distance < channel_.size(); ++distance) {
    const int peer = (channel_.self() + distance) % channel_.size();
    store_bytes(plan_.into_slots, channel_.scatter_slot(channel_.self(), round, peer),
                plan_.from + plan_.begins[static_cast<std::size_t>(peer)] + begin,
                length_at(peer, begin, plan_.scatter_piece));
  }
  if (scatter_sent_ == 0) sign(Phase::scatter, round);
  channel_.sent(Phase::scatter, round);
  ++scatter_sent_;
  return true;
}

bool SharedOperation::take_scatter() {
  const auto round = first_.scatter + scatter_taken_;
  if (scatter_taken_ == plan_.scatter_rounds || !channel_.may_take(Phase::scatter, round)) {
    return false;
  }
  if (scatter_taken_ == 0) check_signatures(Phase::scatter, round);
  const auto begin = scatter_taken_ * plan_.scatter_piece;
  const auto length = length_at(channel_.self(), begin, plan_.scatter_piece);
  switch (plan_.arrival) {
    case SharedPlan::Arrival::reduce:
      if (length > 0) reduce_pieces(round, begin, length);
      break;
    case SharedPlan::Arrival::place:
      for (int distance = 1; distance < channel_.size(); ++distance) {
        const int peer = (channel_.self() + distance) % channel_.size();
        put(plan_.out + plan_.begins[static_cast<std::size_t>(peer)] + begin,
            channel_.scatter_slot(peer, round, channel_.self()), length);
      }
      break;
  }
  channel_.taken(Phase::scatter, round);
  ++scatter_taken_;
  return true;
}

void SharedOperation::reduce_pieces(std::uint64_t round, std::size_t begin, std::size_t length) {
  const auto self = static_cast<std::size_t>(channel_.self());
  const auto gather_round = first_.gather + gather_sent_;
  // Sums go directly to the slot that gathers them, while they are in the nearest cache, if it is
  // free.
  const bool gathers = gather_sent_ == scatter_taken_ && gather_sent_ < plan_.gather_rounds &&
                       channel_.may_send(Phase::gather, gather_round);
  const auto step = gathers ? nearest_cache : length;
  for (std::size_t at = 0; at < length; at += step) {
    for (int peer = 0; peer < channel_.size(); ++peer) {
      inputs_[static_cast<std::size_t>(peer)] =
          channel_.scatter_slot(peer, round, channel_.self()) + at;
    }
    inputs_[self] = plan_.from + plan_.begins[self] + begin + at;
    auto* const sums = plan_.out + begin + at;
    const auto bytes = std::min(step, length - at);
    reduce_in_order(plan_.op, plan_.dtype, inputs_, sums,
                    static_cast<std::int64_t>(bytes / device::size_of(plan_.dtype)));
    if (gathers) {
      store_bytes(plan_.into_slots, channel_.gather_slot(channel_.self(), gather_round) + at, sums,
                  bytes);
    }
  }
  if (gathers) tell_gather(gather_round);
}

void SharedOperation::tell_gather(std::uint64_t round) {
  if (gather_sent_ == 0) sign(Phase::gather, round);
  channel_.sent(Phase::gather, round);
  ++gather_sent_;
}

bool SharedOperation::send_gather() {
  const auto round = first_.gather + gather_sent_;
  if (gather_sent_ == plan_.gather_rounds || !channel_.may_send(Phase::gather, round)) return false;
  // Results of a scatter are gathered as they come.
  if (plan_.scatter_rounds > 0 && scatter_taken_ <= gather_sent_) return false;
  const auto begin = gather_sent_ * plan_.gather_piece;
  const auto self = channel_.self();
  store_bytes(plan_.into_slots, channel_.gather_slot(self, round),
              plan_.whole + plan_.begins[static_cast<std::size_t>(self)] + begin,
              length_at(self, begin, plan_.gather_piece));
  tell_gather(round);
  return true;
}

bool SharedOperation::take_gather() {
  const auto round = first_.gather + gather_taken_;
  if (gather_taken_ == plan_.gather_rounds || gather_sent_ <= gather_taken_ ||
      !channel_.may_take(Phase::gather, round)) {
    return false;
  }
  if (gather_taken_ == 0) check_signatures(Phase::gather, round);
  const auto begin = gather_taken_ * plan_.gather_piece;
  if (plan_.kind == SharedPlan::Kind::small_all_reduce) {
    combine_small(round);
  } else {
    for (int distance = 1; distance < channel_.size(); ++distance) {
      const int peer = (channel_.self() + distance) % channel_.size();
      put(plan_.whole + plan_.begins[static_cast<std::size_t>(peer)] + begin,
          channel_.gather_slot(peer, round), length_at(peer, begin, plan_.gather_piece));
    }
  }
  channel_.taken(Phase::gather, round);
  ++gather_taken_;
  return true;
}

void SharedOperation::combine_small(std::uint64_t round) {
  for (int peer = 0; peer < channel_.size(); ++peer) {
    inputs_[static_cast<std::size_t>(peer)] = channel_.gather_slot(peer, round);
  }
  // Own slot is not read: once peers have read it, a later operation may have filled it anew.
  inputs_[static_cast<std::size_t>(channel_.self())] = plan_.whole;
  reduce_in_order(plan_.op, plan_.dtype, inputs_, plan_.out,
                  static_cast<std::int64_t>(plan_.total_bytes / device::size_of(plan_.dtype)));
}

std::vector<base::Rank> SharedOperation::missing() const {
  std::vector<int> positions;
  if (scatter_taken_ < plan_.scatter_rounds) {
    positions = channel_.not_sent(Phase::scatter, first_.scatter + scatter_taken_);
  }
  if (positions.empty() && gather_taken_ < plan_.gather_rounds) {
    positions = channel_.not_sent(Phase::gather, first_.gather + gather_taken_);
  }
  // All input has come: peers have not read what this rank has to send.
  const auto scatter_round = first_.scatter + scatter_sent_;
  if (positions.empty() && scatter_sent_ < plan_.scatter_rounds &&
      scatter_round >= SharedChannel::slots) {
    positions = channel_.not_taken(Phase::scatter, scatter_round - SharedChannel::slots);
  }
  const auto gather_round = first_.gather + gather_sent_;
  if (positions.empty() && gather_sent_ < plan_.gather_rounds &&
      gather_round >= SharedChannel::slots) {
    positions = channel_.not_taken(Phase::gather, gather_round - SharedChannel::slots);
  }
  std::vector<base::Rank> ranks;
  for (const int position : positions) ranks.push_back(member(position));
  return ranks;
}

}  // namespace trireme::comm
