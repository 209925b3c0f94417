// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// RUN/ranks.json: where each rank runs, and for how long it computes in a step. The file is
/// replaced as a whole: it does not grow with the steps of a run.
namespace trireme::telemetry {

struct RankTime {
  int rank = 0;
  std::string node;
  /// Computing time of a step, without waiting and communication.
  double computing_ms = 0;
};

struct RankTimes {
  std::int64_t restart = 0;
  std::int64_t step = 0;   ///< the last one
  std::int64_t steps = 0;  ///< whose mean the times are
  /// Ascending by rank.
  std::vector<RankTime> ranks;
};

/// RUN/ranks.json.
std::filesystem::path rank_times_of_run(const std::filesystem::path& run);

/// Replaces the file. It is not synced: the next one comes in half a minute. Throws Error
/// (checkpoint).
void write_rank_times(const std::filesystem::path& run, const RankTimes& times);

/// Reads the file as untrusted input (usage); empty if there is none.
base::Result<RankTimes> read_rank_times(const std::filesystem::path& run);

}  // namespace trireme::telemetry
