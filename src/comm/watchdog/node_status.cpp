// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/node_status.hpp"

#include "comm/shm/futex.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace trireme::comm {

void SharedText::set(std::string_view text) {
  std::array<char, sizeof words_> bytes{};
  const auto cut = base::cut_utf8(text, bytes.size() - 1);
  std::copy(cut.begin(), cut.end(), bytes.begin());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    words_[i].store(word, std::memory_order_relaxed);
  }
}

std::string SharedText::get() const {
  std::array<char, sizeof words_> bytes{};
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const auto word = words_[i].load(std::memory_order_relaxed);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  return {bytes.data(), ::strnlen(bytes.data(), bytes.size())};
}

/// Slot in shared memory; all-zero bytes are a valid slot, and no constructor runs.
struct alignas(128) NodeStatus::Slot {
  std::atomic<std::uint32_t> wakeup;
  std::atomic<std::uint32_t> sleeping;
  alignas(128) std::atomic<std::uint32_t> state;
  std::atomic<std::int32_t> process;
  std::atomic<std::int32_t> world_rank;
  SharedText activity;
  /// Awaited ranks, each plus one; 0 ends the list. A reader may see parts of two lists, as with
  /// texts.
  std::array<std::atomic<std::int32_t>, 8> awaited;
  std::array<std::atomic<double>, std::tuple_size_v<PublishedNumbers>> published;
};

struct alignas(128) NodeStatus::Header {
  /// Stage of the first failure: 0 none, 1 being written, 2 readable.
  std::atomic<std::uint32_t> failed;
  std::atomic<std::int32_t> rank;
  SharedText host;
  SharedText text;
};

NodeStatus::NodeStatus(std::unique_ptr<SharedMemory> memory, Place place, int size)
    : memory_(std::move(memory)), place_(std::move(place)), size_(size) {
  auto& mine = slot(place_.self);
  mine.process.store(::getpid());
  mine.world_rank.store(place_.world_rank.value());
  mine.state.store(static_cast<std::uint32_t>(RankState::running));
}

base::Result<std::unique_ptr<NodeStatus>> NodeStatus::create(ProcessGroup& node,
                                                             const Place& place) {
  auto memory =
      SharedMemory::create(node, sizeof(Header) + sizeof(Slot) * std::size_t(node.size()));
  if (!memory.ok()) return memory.failure();
  std::unique_ptr<NodeStatus> status(new NodeStatus(std::move(memory).value(), place, node.size()));
  // Barrier: no rank checks a peer that has not registered yet.
  node.barrier();
  return status;
}

NodeStatus::Header& NodeStatus::header() const {
  return *reinterpret_cast<Header*>(memory_->data());
}

NodeStatus::Slot& NodeStatus::slot(base::LocalRank rank) const {
  return reinterpret_cast<Slot*>(memory_->data() + sizeof(Header))[rank.index()];
}

std::uint32_t NodeStatus::arm() {
  auto& mine = slot(place_.self);
  const auto armed = mine.wakeup.load();
  mine.sleeping.store(1);
  // Fence: the last check for work must not happen before peers can see that this rank may sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return armed;
}

void NodeStatus::sleep(std::uint32_t armed, std::chrono::microseconds at_most) {
  futex_wait(slot(place_.self).wakeup, armed, at_most);
}

void NodeStatus::disarm() {
  slot(place_.self).sleeping.store(0, std::memory_order_relaxed);
}

void NodeStatus::wake(base::LocalRank rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto& other = slot(rank);
  if (other.sleeping.load(std::memory_order_relaxed) == 0) return;
  other.wakeup.fetch_add(1);
  futex_wake(other.wakeup);
}

RankState NodeStatus::state(base::LocalRank rank) const {
  return static_cast<RankState>(slot(rank).state.load());
}

int NodeStatus::process(base::LocalRank rank) const {
  return slot(rank).process.load();
}

base::Rank NodeStatus::world_rank(base::LocalRank rank) const {
  return base::Rank(slot(rank).world_rank.load());
}

std::string NodeStatus::activity(base::LocalRank rank) const {
  return slot(rank).activity.get();
}

void NodeStatus::set_activity(std::string_view text) {
  slot(place_.self).activity.set(text);
}

std::vector<base::Rank> NodeStatus::awaited(base::LocalRank rank) const {
  std::vector<base::Rank> ranks;
  for (const auto& one : slot(rank).awaited) {
    const auto number = one.load(std::memory_order_relaxed);
    if (number == 0) break;
    ranks.emplace_back(number - 1);
  }
  return ranks;
}

void NodeStatus::set_awaited(const std::vector<base::Rank>& ranks) {
  auto& list = slot(place_.self).awaited;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].store(i < ranks.size() ? ranks[i].value() + 1 : 0, std::memory_order_relaxed);
  }
}

void NodeStatus::publish(const PublishedNumbers& numbers) {
  auto& mine = slot(place_.self).published;
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    mine[at].store(numbers[at], std::memory_order_relaxed);
  }
}

PublishedNumbers NodeStatus::published(base::LocalRank rank) const {
  const auto& theirs = slot(rank).published;
  PublishedNumbers numbers{};
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    numbers[at] = theirs[at].load(std::memory_order_relaxed);
  }
  return numbers;
}

bool NodeStatus::fail(const FailureCause& cause) {
  auto& head = header();
  std::uint32_t nobody = 0;
  const bool first = head.failed.compare_exchange_strong(nobody, 1);
  if (first) {
    head.rank.store(cause.rank.value());
    head.host.set(cause.host);
    head.text.set(cause.text);
    head.failed.store(2);
  }
  slot(place_.self).state.store(static_cast<std::uint32_t>(RankState::failed));
  for (int rank = 0; rank < size_; ++rank) wake(base::LocalRank(rank));
  return first;
}

std::optional<FailureCause> NodeStatus::failure() const {
  const auto& head = header();
  if (head.failed.load() != 2) return std::nullopt;
  return FailureCause{base::Rank(head.rank.load()), head.host.get(), head.text.get()};
}

void NodeStatus::leave() {
  slot(place_.self).state.store(static_cast<std::uint32_t>(RankState::left));
}

}  // namespace trireme::comm
