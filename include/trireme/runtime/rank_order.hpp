// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/layout/rank_order.hpp"
#include "trireme/runtime/cluster.hpp"

#include <optional>
#include <string>

namespace trireme::runtime {

/// Decides which process becomes which rank, at the moment when MPI starts. Must outlive the
/// MpiRuntime that was started with its numbering().
class RankOrdering {
 public:
  RankOrdering(const JoinOptions& options, const base::Environment& environment);

  /// Numbering for MPI's start. Processes that differ in rule or mesh (an error that is reported
  /// later) keep their order.
  comm::Numbering numbering();

  /// Decision in a sentence, on the launcher's first process; empty on others, and when there was
  /// nothing to decide.
  const std::string& sentence() const { return sentence_; }

 private:
  std::vector<int> order(const std::vector<comm::LaunchedProcess>& processes);

  JoinOptions options_;
  /// True if the launcher's order is required: by run.order, or by srun --distribution.
  bool keeps_ = false;
  std::string word_;
  std::string sentence_;
};

}  // namespace trireme::runtime
