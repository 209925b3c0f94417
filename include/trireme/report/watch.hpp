// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/trend.hpp"
#include "trireme/report/run_view.hpp"

#include <string>
#include <vector>

namespace trireme::report {

/// Ranks of a node, as their logs name it.
struct NodeRanks {
  std::string node;
  std::vector<int> ranks;  ///< ascending
};

/// What a part of a line means; a terminal has colours for it.
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

  /// Lines of at most `size.columns` columns; of more than `size.rows` the first ones. `now_ms`
  /// (since 1970) is what ages count to.
  std::vector<FrameLine> frame(FrameSize size, base::Glyphs glyphs, std::int64_t now_ms) const;

 private:
  WatchedRun(const std::filesystem::path& path);
  void read_start();

  telemetry::RecordReader reader_;
  State state_ = State::unknown;
  /// Name and configuration; its record is the reader's.
  RunView view_;
  std::vector<NodeRanks> nodes_;
  /// Start to which configuration and nodes belong.
  std::int64_t read_start_ = -1;
};

/// The frame without tones.
std::string text_of(const std::vector<FrameLine>& frame);

}  // namespace trireme::report
