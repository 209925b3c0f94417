// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/curve_text.hpp"
#include "trireme/report/run_view.hpp"
#include "trireme/telemetry/rank_times.hpp"

#include <string>
#include <vector>

namespace trireme::report {

/// Ranks of a node, as their times or logs name it.
struct NodeRanks {
  std::string node;
  std::vector<int> ranks;  ///< ascending
  /// The rank that computes longest in a step; -1 where times are not known.
  int slowest = -1;
  double slowest_ms = 0;
};

/// Meaning of a part of a line; a terminal has colours for it.
enum class Tone { plain, faint, strong, good, warning, bad };
struct Span {
  std::string text;
  Tone tone = Tone::plain;
};
using FrameLine = std::vector<Span>;

struct FrameSize {
  std::size_t columns = 100;
  std::size_t rows = 0;  ///< 0: as many as there are
};

/// A run that is read again and again while it goes on. Each reading takes what was appended since;
/// memory grows with the steps of the run.
class WatchedRun {
 public:
  /// Failures (usage): the path is no run directory, or its record cannot be read.
  static base::Result<WatchedRun> open(const std::filesystem::path& path);
  /// Reads on. Failures as open().
  base::Status advance();
  /// State at the last reading.
  State state() const { return state_; }

  /// Times of ranks that are newer than the recorded ones, from the nodes' answers to Prometheus.
  void show(std::vector<telemetry::RankTime> times);

  /// Lines of at most `size.columns` columns; of more than `size.rows` the first ones. `now_ms`
  /// (since 1970) is what ages count to.
  std::vector<FrameLine> frame(FrameSize size, base::Glyphs glyphs, std::int64_t now_ms) const;

 private:
  WatchedRun(const std::filesystem::path& path);
  void read_start();
  /// The recorded times of this start, if there are any.
  void read_times();
  /// Nodes from the times of ranks, if there are any.
  void place_times();

  telemetry::RecordReader reader_;
  State state_ = State::unknown;
  /// The process that holds the run has written no line yet: all lines are of earlier starts.
  bool is_silent_ = false;
  /// Name and configuration; its record is the reader's.
  RunView view_;
  std::vector<NodeRanks> nodes_;
  /// Times of ranks, from RUN/ranks.json and from show(), which are newer.
  std::vector<telemetry::RankTime> recorded_;
  std::vector<telemetry::RankTime> shown_;
  std::filesystem::file_time_type read_times_ = {};
  /// Median of the times; telemetry::absent where they are not known.
  double median_ms_ = telemetry::absent;
  /// Start to which configuration and nodes belong.
  std::int64_t read_start_ = -1;
};

/// The frame without tones.
std::string text_of(const std::vector<FrameLine>& frame);

}  // namespace trireme::report
