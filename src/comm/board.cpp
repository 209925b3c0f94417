#include "board.hpp"

#include "cut_text.hpp"
#include "futex.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace trireme::comm {

void SharedText::set(std::string_view text) {
  std::array<char, sizeof words_> bytes{};
  const auto cut = cut_text(text, bytes.size() - 1);
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

/// All-zero bytes are a valid slot: nobody constructs it.
struct alignas(128) Board::Slot {
  std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleeping;
  alignas(128) std::atomic<std::uint32_t> state;
  std::atomic<std::int32_t> process;
  std::atomic<std::int32_t> world_rank;
  SharedText activity;
  /// One more than each rank; 0 ends the list. A reader may see parts of two lists, as with texts.
  std::array<std::atomic<std::int32_t>, 8> awaited;
};

struct alignas(128) Board::Header {
  /// 0: nobody has failed; 1: a verdict is being written; 2: it stands.
  std::atomic<std::uint32_t> failed;
  std::atomic<std::int32_t> culprit;
  SharedText host;
  SharedText cause;
};

Board::Board(std::unique_ptr<SharedMemory> memory, Place place, int size)
    : memory_(std::move(memory)), place_(std::move(place)), size_(size) {
  auto& mine = slot(place_.self);
  mine.process.store(::getpid());
  mine.world_rank.store(place_.world_rank.value());
  mine.state.store(static_cast<std::uint32_t>(RankState::running));
}

base::Result<std::unique_ptr<Board>> Board::create(ProcessGroup& node, const Place& place) {
  auto memory =
      SharedMemory::create(node, sizeof(Header) + sizeof(Slot) * std::size_t(node.size()));
  if (!memory.ok()) return memory.failure();
  std::unique_ptr<Board> board(new Board(std::move(memory).value(), place, node.size()));
  // Nobody looks for a peer that has not signed in yet.
  node.barrier();
  return board;
}

Board::Header& Board::header() const {
  return *reinterpret_cast<Header*>(memory_->data());
}

Board::Slot& Board::slot(base::LocalRank rank) const {
  return reinterpret_cast<Slot*>(memory_->data() + sizeof(Header))[rank.index()];
}

std::uint32_t Board::arm() {
  auto& mine = slot(place_.self);
  const auto armed = mine.bell.load();
  mine.sleeping.store(1);
  // The last look for work must not be done before peers can see that this rank may sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return armed;
}

void Board::sleep(std::uint32_t armed, std::chrono::microseconds at_most) {
  futex_wait(slot(place_.self).bell, armed, at_most);
}

void Board::disarm() {
  slot(place_.self).sleeping.store(0, std::memory_order_relaxed);
}

void Board::ring(base::LocalRank rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto& other = slot(rank);
  if (other.sleeping.load(std::memory_order_relaxed) == 0) return;
  other.bell.fetch_add(1);
  futex_wake(other.bell);
}

RankState Board::state(base::LocalRank rank) const {
  return static_cast<RankState>(slot(rank).state.load());
}

int Board::process(base::LocalRank rank) const {
  return slot(rank).process.load();
}

base::Rank Board::world_rank(base::LocalRank rank) const {
  return base::Rank(slot(rank).world_rank.load());
}

std::string Board::activity(base::LocalRank rank) const {
  return slot(rank).activity.get();
}

void Board::set_activity(std::string_view text) {
  slot(place_.self).activity.set(text);
}

std::vector<base::Rank> Board::awaited(base::LocalRank rank) const {
  std::vector<base::Rank> ranks;
  for (const auto& one : slot(rank).awaited) {
    const auto number = one.load(std::memory_order_relaxed);
    if (number == 0) break;
    ranks.emplace_back(number - 1);
  }
  return ranks;
}

void Board::set_awaited(const std::vector<base::Rank>& ranks) {
  auto& list = slot(place_.self).awaited;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].store(i < ranks.size() ? ranks[i].value() + 1 : 0, std::memory_order_relaxed);
  }
}

bool Board::fail(const Verdict& verdict) {
  auto& head = header();
  std::uint32_t nobody = 0;
  const bool first = head.failed.compare_exchange_strong(nobody, 1);
  if (first) {
    head.culprit.store(verdict.culprit.value());
    head.host.set(verdict.host);
    head.cause.set(verdict.cause);
    head.failed.store(2);
  }
  slot(place_.self).state.store(static_cast<std::uint32_t>(RankState::failed));
  for (int rank = 0; rank < size_; ++rank) ring(base::LocalRank(rank));
  return first;
}

std::optional<Board::Verdict> Board::verdict() const {
  const auto& head = header();
  if (head.failed.load() != 2) return std::nullopt;
  return Verdict{base::Rank(head.culprit.load()), head.host.get(), head.cause.get()};
}

void Board::leave() {
  slot(place_.self).state.store(static_cast<std::uint32_t>(RankState::left));
}

}  // namespace trireme::comm
