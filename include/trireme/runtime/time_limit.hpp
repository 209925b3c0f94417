// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace trireme::runtime {

/// End of this job by Slurm's time limit. From SLURM_JOB_END_TIME where Slurm sets it (not before
/// 23.02), else from squeue, which only the first rank runs. There is none outside of a job,
/// without a limit, on other ranks, and when Slurm does not answer within seconds.
class TimeLimit {
 public:
  /// No limit.
  TimeLimit() = default;
  /// To be called before MPI starts.
  explicit TimeLimit(const base::Environment& environment);

  /// True if it is at most `lead_seconds` away. Limits may be extended while a job runs: when it
  /// seems near, squeue is run (for some seconds) before the answer is true.
  bool is_near(double lead_seconds);

 private:
  void ask_again();

  std::string job_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace trireme::runtime
