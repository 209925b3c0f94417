// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/comm/mpi_runtime.hpp"

#include "comm/shm/segment.hpp"
#include "comm/watchdog/failure_message.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

/// Short text that one process writes and others may read at any time. A reader may see parts of
/// two texts: good enough for messages to people, its only use.
class SharedText {
 public:
  void set(std::string_view text);
  std::string get() const;

 private:
  std::array<std::atomic<std::uint64_t>, 64> words_{};
};

/// State of a rank's process.
enum class RankState : std::uint32_t { absent, running, failed, left };

/// Status page of one node in shared memory (zero at first): for each rank its state, what it waits
/// for and a futex that wakes it, and the first failure.
class NodeStatus {
 public:
  struct Place {
    base::LocalRank self;
    base::Rank world_rank;
    std::string host;
  };
  /// Collective over `node`, whose positions are local ranks.
  static base::Result<std::unique_ptr<NodeStatus>> create(ProcessGroup& node, const Place& place);

  int size() const { return size_; }
  base::LocalRank self() const { return place_.self; }

  // Wake-up: arm, look once more for work, then sleep until a peer calls wake() after the arming.
  std::uint32_t arm();
  void sleep(std::uint32_t armed, std::chrono::microseconds at_most);
  void disarm();
  /// Wakes the rank if it sleeps; what was written before is visible to it.
  void wake(base::LocalRank rank);

  RankState state(base::LocalRank rank) const;
  int process(base::LocalRank rank) const;
  base::Rank world_rank(base::LocalRank rank) const;
  /// "computing", "waits in …".
  std::string activity(base::LocalRank rank) const;
  void set_activity(std::string_view text);
  /// World ranks that a rank waits for, the first few; empty while it waits for none.
  std::vector<base::Rank> awaited(base::LocalRank rank) const;
  void set_awaited(const std::vector<base::Rank>& ranks);

  /// Numbers of a rank for its node; zeros at first. A reader may see parts of two sets.
  void publish(const PublishedNumbers& numbers);
  PublishedNumbers published(base::LocalRank rank) const;

  /// Records that this rank has failed. The first rank of the node to do so gives the cause for
  /// all; returns whether it was this one.
  bool fail(const FailureCause& cause);
  /// Cause of the first failure, once any rank of the node has failed.
  std::optional<FailureCause> failure() const;
  /// Records that this rank ends in good order.
  void leave();

 private:
  struct Slot;
  struct Header;

  NodeStatus(std::unique_ptr<SharedMemory> memory, Place place, int size);
  Slot& slot(base::LocalRank rank) const;
  Header& header() const;

  std::unique_ptr<SharedMemory> memory_;
  Place place_;
  int size_;
};

}  // namespace trireme::comm
