// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/report/watch.hpp"

#include "placement.hpp"

#include <map>

namespace trireme::report {

namespace fs = std::filesystem;

WatchedRun::WatchedRun(const fs::path& path) : reader_(telemetry::record_of_run(path)) {
  view_.path = path;
  view_.name = folder_name(path);
}

base::Result<WatchedRun> WatchedRun::open(const fs::path& path) {
  // examine() refuses what is no run directory, in the words of the other commands.
  const telemetry::RunRecord none;
  if (!postmortem::is_run(path)) {
    const auto refused = postmortem::examine(path, {{}, {}, &none});
    if (!refused.ok()) return refused.failure();
  }
  WatchedRun run(path);
  if (auto read = run.advance(); !read.ok()) return read.failure();
  return run;
}

base::Status WatchedRun::advance() {
  // Order: the lock first. A run that ends meanwhile has noted all before it gives the lock back.
  const auto holder = record::living_holder(view_.path);
  if (auto read = reader_.advance(); !read.ok()) return read.failure();
  const auto& record = reader_.record();
  state_ = holder ? State::running : state_of(view_.path, record);
  const auto held_since = holder ? base::utc_milliseconds(holder->since).value_or(0) : 0;
  // Compared with the start alone: later the clock may have been set back. A run that has noted its
  // end keeps the lock until its memory is given back.
  const bool is_older = record.start_ms > 0 && record.start_ms < held_since;
  is_silent_ = holder && is_older;
  if (read_start_ != record.start_count) read_start();
  read_times();
  return {};
}

void WatchedRun::read_times() {
  std::error_code error;
  const auto written = fs::last_write_time(telemetry::rank_times_of_run(view_.path), error);
  const auto& record = reader_.record();
  if (error || written == read_times_ || record.steps_of_start == 0) return;
  // Cut off, or another program's: a run that goes on writes a new one soon.
  auto times = telemetry::read_rank_times(view_.path);
  if (!times.ok() || times->restart != record.restart) return;
  read_times_ = written;
  recorded_ = std::move(times->ranks);
  place_times();
}

void WatchedRun::show(std::vector<telemetry::RankTime> times) {
  shown_ = std::move(times);
  place_times();
}

void WatchedRun::place_times() {
  // A node that does not answer stays, as the run has recorded it.
  std::map<int, const telemetry::RankTime*> newest;
  for (const auto& time : recorded_) newest[time.rank] = &time;
  for (const auto& time : shown_) newest[time.rank] = &time;
  if (newest.empty()) return;
  std::vector<telemetry::RankTime> times;
  for (const auto& [rank, time] : newest) times.push_back(*time);
  nodes_ = nodes_of(times);
  median_ms_ = median_ms(times);
}

void WatchedRun::read_start() {
  read_start_ = reader_.record().start_count;
  view_.values = values_of(view_.path);
  nodes_ = nodes_of(view_.path);
  median_ms_ = telemetry::absent;
  read_times_ = {};
  recorded_.clear();
  shown_.clear();
}

}  // namespace trireme::report
