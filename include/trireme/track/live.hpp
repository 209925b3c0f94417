// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/track/sync.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

namespace trireme::track {

/// A thread that sends a run's record to trackers while the run goes on. It reads the run's files
/// alone, with the lowest priority: no step waits for it. A tracker that refuses or is gone is
/// warned of once, and gets what it has missed when it is back.
class Live {
 public:
  struct Options {
    base::Environment environment = {};
    std::chrono::milliseconds interval{10'000};
    TraceRanks trace_ranks = TraceRanks::sampled;
    /// Patience of finish(), when a job may have little time left: for all servers together.
    std::chrono::milliseconds last_patience{10'000};
  };
  Live(std::filesystem::path run, std::vector<Target> targets, Options options);
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  /// Ends the thread. What it has not sent is for finish(), a later start, or `trireme track sync`.
  ~Live();

  /// Sends the rest, and how the run has ended: to be called when the run was given back. All
  /// trackers are sent to at the same time, and all requests end with `last_patience`, whatever
  /// their number; failures are warnings.
  void finish();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace trireme::track
