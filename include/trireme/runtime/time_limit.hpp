// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace trireme::runtime {

/// When Slurm's time limit ends this job. From SLURM_JOB_END_TIME where Slurm sets it (not before
/// 23.02), else squeue is asked, by the first rank alone. There is none outside of a job, without a
/// limit, on other ranks, and when Slurm does not answer within seconds.
class TimeLimit {
 public:
  /// None.
  TimeLimit() = default;
  /// To be called before MPI starts.
  explicit TimeLimit(const base::Environment& environment);

  /// Whether it is at most `lead_seconds` away. Limits get extended while a job runs: when it seems
  /// near, squeue is asked (for some seconds) before the answer is yes.
  bool is_near(double lead_seconds);

 private:
  void ask_again();

  std::string job_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace trireme::runtime
