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
  /// Off outside of a job and for an interval of 0. A comment that somebody else wrote (`sbatch
  /// --comment`) is left alone, and after three refusals in a row no more is tried.
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

/// The text as the value of Comment=: printable ASCII without quotes, at most 200 characters, and
/// behind a mark that says whose it is.
std::string comment_value(const std::string& text);

}  // namespace trireme::runtime
