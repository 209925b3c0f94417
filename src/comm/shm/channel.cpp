// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/channel.hpp"

namespace trireme::comm {
namespace {

/// Size small enough that written data are still in a cache when peers read them; large enough that
/// waits and wake-ups are negligible.
constexpr std::size_t scatter_bytes = std::size_t{256} << 10;
constexpr std::size_t gather_bytes = std::size_t{128} << 10;
/// Room for a Signature before the data of a slot.
constexpr std::size_t head_bytes = 64;
constexpr std::size_t line = 64;

constexpr std::size_t phase_bytes(Phase phase) {
  return head_bytes + (phase == Phase::scatter ? scatter_bytes : gather_bytes);
}

constexpr std::size_t outbox_bytes =
    SharedChannel::slots * (phase_bytes(Phase::scatter) + phase_bytes(Phase::gather));

constexpr std::size_t index(Phase phase) {
  return static_cast<std::size_t>(phase);
}

}  // namespace

/// Counters; zero bytes are a valid start. Two cache lines, because readers and writers of each
/// differ.
struct alignas(128) SharedChannel::Counters {
  std::atomic<std::uint64_t> sent[2];
  alignas(64) std::atomic<std::uint64_t> taken[2];
};

std::size_t SharedChannel::bytes_needed(int ranks) {
  return static_cast<std::size_t>(ranks) * (sizeof(Counters) + outbox_bytes);
}

SharedChannel::SharedChannel(SharedMemory& memory, NodeStatus& status,
                             std::vector<base::LocalRank> members, int self)
    : memory_(memory.data()),
      status_(status),
      members_(std::move(members)),
      size_(static_cast<int>(members_.size())),
      self_(self) {}

SharedChannel::Counters& SharedChannel::counters(int position) const {
  return reinterpret_cast<Counters*>(memory_)[position];
}

std::byte* SharedChannel::outbox(int position) const {
  return memory_ + static_cast<std::size_t>(size_) * sizeof(Counters) +
         static_cast<std::size_t>(position) * outbox_bytes;
}

std::size_t SharedChannel::scatter_piece() const {
  return scatter_bytes / static_cast<std::size_t>(size_) / line * line;
}

std::size_t SharedChannel::gather_piece() {
  return gather_bytes;
}

bool SharedChannel::may_send(Phase phase, std::uint64_t round) const {
  if (counters(self_).sent[index(phase)].load(std::memory_order_relaxed) != round) return false;
  if (round < slots) return true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == self_) continue;
    const auto taken = counters(peer).taken[index(phase)].load(std::memory_order_acquire);
    if (taken + slots <= round) return false;
  }
  return true;
}

bool SharedChannel::may_take(Phase phase, std::uint64_t round) const {
  if (counters(self_).taken[index(phase)].load(std::memory_order_relaxed) != round) return false;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == self_) continue;
    if (counters(peer).sent[index(phase)].load(std::memory_order_acquire) <= round) return false;
  }
  return true;
}

std::byte* SharedChannel::scatter_slot(int source, std::uint64_t round, int destination) const {
  return outbox(source) + round % slots * phase_bytes(Phase::scatter) + head_bytes +
         static_cast<std::size_t>(destination) * scatter_piece();
}

std::byte* SharedChannel::gather_slot(int source, std::uint64_t round) const {
  return outbox(source) + slots * phase_bytes(Phase::scatter) +
         round % slots * phase_bytes(Phase::gather) + head_bytes;
}

Signature& SharedChannel::signature(Phase phase, int source, std::uint64_t round) const {
  auto* const data =
      phase == Phase::scatter ? scatter_slot(source, round, 0) : gather_slot(source, round);
  return *reinterpret_cast<Signature*>(data - head_bytes);
}

void SharedChannel::sent(Phase phase, std::uint64_t round) {
  counters(self_).sent[index(phase)].store(round + 1, std::memory_order_release);
  wake_peers();
}

void SharedChannel::taken(Phase phase, std::uint64_t round) {
  counters(self_).taken[index(phase)].store(round + 1, std::memory_order_release);
  wake_peers();
}

std::vector<int> SharedChannel::not_sent(Phase phase, std::uint64_t round) const {
  std::vector<int> positions;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_ && counters(peer).sent[index(phase)].load() <= round)
      positions.push_back(peer);
  }
  return positions;
}

std::vector<int> SharedChannel::not_taken(Phase phase, std::uint64_t round) const {
  std::vector<int> positions;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_ && counters(peer).taken[index(phase)].load() <= round) {
      positions.push_back(peer);
    }
  }
  return positions;
}

void SharedChannel::wake_peers() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != self_) wake(peer);
  }
}

void SharedChannel::wake(int position) {
  status_.wake(members_[static_cast<std::size_t>(position)]);
}

}  // namespace trireme::comm
