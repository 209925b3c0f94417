#pragma once

#include "trireme/base/id.hpp"

#include "shared_memory.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

/// A short text that one process writes and others may read at any time. A reader may see parts
/// of two texts: good enough for people, and nothing else uses it.
class SharedText {
 public:
  void set(std::string_view text);
  std::string get() const;

 private:
  std::array<std::atomic<std::uint64_t>, 64> words_{};
};

/// How far a rank is in its life.
enum class RankState : std::uint32_t { absent, running, failed, left };

/// What the ranks of one node show each other: a bell to wake each, who is alive, who failed
/// first and why. Lives in shared memory that is zero at first.
class Board {
 public:
  struct Place {
    base::LocalRank self;
    base::Rank world_rank;
    std::string host;
  };
  /// Collective over `node`, whose positions are local ranks.
  static base::Result<std::unique_ptr<Board>> create(ProcessGroup& node, const Place& place);

  int size() const { return size_; }
  base::LocalRank self() const { return place_.self; }

  // The bell: arm, look once more for work, then sleep until somebody rings after the arming.
  std::uint32_t arm();
  void sleep(std::uint32_t armed, std::chrono::microseconds at_most);
  void disarm();
  /// Wakes the rank if it sleeps; what was written before is visible to it.
  void ring(base::LocalRank rank);

  RankState state(base::LocalRank rank) const;
  int process(base::LocalRank rank) const;
  base::Rank world_rank(base::LocalRank rank) const;
  /// "computing", "waits in …".
  std::string activity(base::LocalRank rank) const;
  void set_activity(std::string_view text);
  /// World ranks that a rank waits for, the first few; none while it waits for nobody.
  std::vector<base::Rank> awaited(base::LocalRank rank) const;
  void set_awaited(const std::vector<base::Rank>& ranks);

  struct Verdict {
    base::Rank culprit;
    std::string host;
    std::string cause;
  };
  /// This rank has failed. The first to say so on the node gives the verdict for all; whether
  /// it was this one.
  bool fail(const Verdict& verdict);
  /// Why the run has failed, once any rank of the node has failed.
  std::optional<Verdict> verdict() const;
  /// This rank ends in good order.
  void leave();

 private:
  struct Slot;
  struct Header;

  Board(std::unique_ptr<SharedMemory> memory, Place place, int size);
  Slot& slot(base::LocalRank rank) const;
  Header& header() const;

  std::unique_ptr<SharedMemory> memory_;
  Place place_;
  int size_;
};

}  // namespace trireme::comm
