// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/runtime/time_limit.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace trireme::train {

/// Times of saves by the clock. The first save of a start comes after a tenth of the interval: it
/// proves early that the storage works, and keeps the work of a job that dies young.
class SaveSchedule {
 public:
  using Clock = std::chrono::steady_clock;

  /// `every_minutes` 0: never.
  SaveSchedule(double every_minutes, Clock::time_point start)
      : interval_seconds_(60 * every_minutes),
        wait_seconds_(interval_seconds_ / 10),
        last_(start) {}

  bool is_due(Clock::time_point now) const {
    return interval_seconds_ > 0 &&
           std::chrono::duration<double>(now - last_).count() >= wait_seconds_;
  }
  /// Records that a save was done or tried.
  void saved(Clock::time_point now) {
    last_ = now;
    wait_seconds_ = interval_seconds_;
  }
  /// Another interval, which counts from the last save.
  void change(double every_minutes) { wait_seconds_ = interval_seconds_ = 60 * every_minutes; }

 private:
  double interval_seconds_;
  double wait_seconds_;
  Clock::time_point last_;
};

/// Reason why a run stops before its last step, as a number that ranks can agree on: none, one of
/// the reasons below, or `first_signal` plus a signal. If several hold, the largest counts.
struct Stop {
  static constexpr std::int32_t first_signal = 1 << 8;
  static constexpr std::int32_t time_limit = 1 << 16;
  static constexpr std::int32_t stop_file = 1 << 17;
  static constexpr std::int32_t lost_lock = 1 << 18;

  std::int32_t reason = 0;

  explicit operator bool() const { return reason != 0; }
  bool for_good() const { return reason == stop_file; }
  /// "signal 15 (SIGTERM)".
  std::string text() const;
};

/// Threads that still write a rank's part of a checkpoint.
struct BusyThreads {
  bool saving = false;
  bool draining = false;  ///< from the nodes' own storage
};

/// Wishes of the first rank that all ranks follow before the next step.
struct Wishes {
  /// A step has beaten the measured peak.
  bool measure_peak = false;
  /// Times of ranks are to be recorded.
  bool rank_times = false;
};

/// External requests to a run, checked between two batches: signals, the files STOP and PROFILE,
/// the nearing time limit, the clock of its checkpoints.
class Requests {
 public:
  struct Sources {
    std::filesystem::path directory;
    double save_every_minutes = 0;
    runtime::TimeLimit limit;
    /// Lock of the run on the first rank, null on others; outlives the requests.
    const record::RunLock* lock = nullptr;
  };
  struct Answer {
    Stop stop;
    bool save = false;
    Wishes wishes;
    BusyThreads busy;
  };

  explicit Requests(Sources sources);

  /// Collective over the world. Host-blocking: yes. The same answer on all ranks, from the clock,
  /// the files and the wishes of the first one, and from all whether they are busy. The run stops
  /// `lead_seconds` before the time limit; 0 never. A stop stays in all later answers. Throws
  /// AgreedError (launch) when another start has taken the run over.
  const Answer& ask(comm::ProcessGroup& world, double lead_seconds, const Wishes& wishes,
                    const BusyThreads& busy);
  const Answer& answer() const { return answer_; }
  /// Steps whose times are to be recorded, which the file PROFILE has asked for since the last
  /// call; 0: none. The same on all ranks.
  std::int64_t take_profile_steps() { return std::exchange(profile_steps_, 0); }
  /// Collective over the world. Host-blocking: yes. Fails on all ranks if the run's lock was lost
  /// since the last ask().
  void before_save(comm::ProcessGroup& world) const;
  /// Throws Error (launch) if this rank's lock of the run is lost by now. For any thread.
  void check_lock() const;
  void saved() { schedule_.saved(SaveSchedule::Clock::now()); }
  /// Another interval between saves by the clock. On the first rank.
  void save_every(double minutes) { schedule_.change(minutes); }

 private:
  std::int32_t own_reason(bool is_first, double lead_seconds, const Wishes& wishes);
  /// Looks for files in the run directory, now and then.
  void look_for_files();

  Sources sources_;
  SaveSchedule schedule_;
  Answer answer_;
  std::optional<SaveSchedule::Clock::time_point> looked_;
  bool stop_file_ = false;
  /// Steps that the file PROFILE has asked the first rank for, and all ranks have not heard of.
  std::int32_t asked_profile_steps_ = 0;
  std::int64_t profile_steps_ = 0;
};

}  // namespace trireme::train
