// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace trireme::train {

/// Measured rate of all ranks' GEMMs, kept between starts: a number that is measured anew each time
/// makes MFU of two starts incomparable. It lies in the run's file and in one for all runs of the
/// user, and of two numbers the larger counts: a busy machine only makes one too low.
class KeptPeak {
 public:
  struct Files {
    std::filesystem::path run;
    /// Empty: the user has no folder for such files.
    std::filesystem::path user;
  };
  explicit KeptPeak(Files files) : files_(std::move(files)) {}

  /// Collective over the world. Looks for ranks of these kinds, each of which says its own.
  void look_up(const std::string& own_kind, comm::ProcessGroup& world);
  /// The kept rate; the same on all ranks.
  std::optional<double> flops() const { return flops_; }
  /// Keeps larger numbers: GEMMs' for all runs, and what the run divides by, which a step may have
  /// raised, for the run. What cannot be written is warned of. Nothing before look_up(), and on
  /// other ranks than the first.
  void raise(double of_gemms, double of_run);

 private:
  Files files_;
  /// Name of all ranks' kinds in the files; empty before look_up() and on other ranks than the
  /// first.
  std::string name_;
  std::optional<double> flops_;
};

}  // namespace trireme::train
