// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace trireme::runtime {

/// Keeps the comment of this Slurm job up to date (`squeue -o %k`, `scontrol show job`): a thread
/// of its own runs scontrol, so that a slow controller delays no step.
class JobComment {
 public:
  /// Off outside of a job and for an interval of 0. A comment that is not Trireme's (`sbatch
  /// --comment`) is left alone, and three refusals in a row end the attempts.
  JobComment(const base::Environment& environment, std::chrono::milliseconds interval);
  ~JobComment();
  JobComment(const JobComment&) = delete;
  JobComment& operator=(const JobComment&) = delete;

  /// Returns at once. The newest text is written when the interval since the last has passed.
  void offer(const std::string& text);

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

/// Value of Comment= for a text: printable ASCII without quotes, at most 200 characters, behind a
/// mark that identifies the writer.
std::string comment_value(const std::string& text);

}  // namespace trireme::runtime
