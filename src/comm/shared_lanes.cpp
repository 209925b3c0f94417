#include "shared_lanes.hpp"

namespace trireme::comm {
namespace {

/// Small enough that what a rank writes is still in a cache when its peers read it; large enough
/// that waits and wake-ups do not count.
constexpr std::size_t exchange_bytes = std::size_t{256} << 10;
constexpr std::size_t spread_bytes = std::size_t{128} << 10;
/// Room for a Signature before the data of a slot.
constexpr std::size_t head_bytes = 64;
constexpr std::size_t line = 64;

constexpr std::size_t lane_bytes(Lane lane) {
  return head_bytes + (lane == Lane::exchange ? exchange_bytes : spread_bytes);
}

constexpr std::size_t outbox_bytes =
    SharedLanes::slots * (lane_bytes(Lane::exchange) + lane_bytes(Lane::spread));

constexpr std::size_t index(Lane lane) {
  return static_cast<std::size_t>(lane);
}

}  // namespace

/// Zero bytes are a valid start. Two lines, because readers and writers of each differ.
struct alignas(128) SharedLanes::Counters {
  std::atomic<std::uint64_t> sent[2];
  alignas(64) std::atomic<std::uint64_t> taken[2];
};

std::size_t SharedLanes::bytes_needed(int ranks) {
  return static_cast<std::size_t>(ranks) * (sizeof(Counters) + outbox_bytes);
}

SharedLanes::SharedLanes(SharedMemory& memory, Board& board, std::vector<base::LocalRank> members,
                         int self)
    : memory_(memory.data()),
      board_(board),
      members_(std::move(members)),
      size_(static_cast<int>(members_.size())),
      self_(self) {}

SharedLanes::Counters& SharedLanes::counters(int position) const {
  return reinterpret_cast<Counters*>(memory_)[position];
}

std::byte* SharedLanes::outbox(int position) const {
  return memory_ + static_cast<std::size_t>(size_) * sizeof(Counters) +
         static_cast<std::size_t>(position) * outbox_bytes;
}

std::size_t SharedLanes::exchange_piece() const {
  return exchange_bytes / static_cast<std::size_t>(size_) / line * line;
}

std::size_t SharedLanes::spread_piece() {
  return spread_bytes;
}

bool SharedLanes::may_send(Lane lane, std::uint64_t round) const {
  if (counters(self_).sent[index(lane)].load(std::memory_order_relaxed) != round) return false;
  if (round < slots) return true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == self_) continue;
    const auto taken = counters(peer).taken[index(lane)].load(std::memory_order_acquire);
    if (taken + slots <= round) return false;
  }
  return true;
}

bool SharedLanes::may_take(Lane lane, std::uint64_t round) const {
  if (counters(self_).taken[index(lane)].load(std::memory_order_relaxed) != round) return false;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == self_) continue;
    if (counters(peer).sent[index(lane)].load(std::memory_order_acquire) <= round) return false;
  }
  return true;
}

std::byte* SharedLanes::exchange_slot(int source, std::uint64_t round, int destination) const {
  return outbox(source) + round % slots * lane_bytes(Lane::exchange) + head_bytes +
         static_cast<std::size_t>(destination) * exchange_piece();
}

std::byte* SharedLanes::spread_slot(int source, std::uint64_t round) const {
  return outbox(source) + slots * lane_bytes(Lane::exchange) +
         round % slots * lane_bytes(Lane::spread) + head_bytes;
}

Signature& SharedLanes::signature(Lane lane, int source, std::uint64_t round) const {
  auto* const data =
      lane == Lane::exchange ? exchange_slot(source, round, 0) : spread_slot(source, round);
  return *reinterpret_cast<Signature*>(data - head_bytes);
}

void SharedLanes::sent(Lane lane, std::uint64_t round) {
  counters(self_).sent[index(lane)].store(round + 1, std::memory_order_release);
  ring_peers();
}

void SharedLanes::taken(Lane lane, std::uint64_t round) {
  counters(self_).taken[index(lane)].store(round + 1, std::memory_order_release);
  ring_peers();
}

std::vector<int> SharedLanes::not_sent(Lane lane, std::uint64_t round) const {
  std::vector<int> positions;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_ && counters(peer).sent[index(lane)].load() <= round)
      positions.push_back(peer);
  }
  return positions;
}

std::vector<int> SharedLanes::not_taken(Lane lane, std::uint64_t round) const {
  std::vector<int> positions;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_ && counters(peer).taken[index(lane)].load() <= round) {
      positions.push_back(peer);
    }
  }
  return positions;
}

void SharedLanes::ring_peers() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_) ring(peer);
  }
}

void SharedLanes::ring(int position) {
  board_.ring(members_[static_cast<std::size_t>(position)]);
}

}  // namespace trireme::comm
