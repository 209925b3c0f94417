// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/plan/run_estimate.hpp"
#include "trireme/plan/search.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::plan {

/// Where a run may go, and on how much of each machine.
struct ComparisonRequest {
  std::vector<std::filesystem::path> machines;
  /// One of them: ranks in all, or whole nodes.
  int ranks = 0;
  int nodes = 0;
  /// Figure that the best has least of: time, cost or CO2.
  Objective objective = Objective::time;
  double margin = 0.03;
  /// Word that a site must allow; empty: the data may be anywhere.
  std::string data;
  /// Whether nodes that may be taken away are looked at, too.
  bool includes_spot = false;
  int threads = 2;
};

/// A run on one machine, in the layout that is best there.
struct ComparedMachine {
  std::string machine;
  Tenure tenure = Tenure::own;
  int ranks = 0;
  /// Nothing where there is no layout, or no permission.
  std::optional<JudgedLayout> best;
  RunEstimate run;
  /// Whether it is within the margin of the first.
  bool tie = false;
  /// Why it is not compared; empty where it is.
  std::string left_out;
};

/// Best first, behind them those that are left out. The failure (usage) names a machine file's
/// mistakes, or a key without which machines cannot be compared so.
base::Result<std::vector<ComparedMachine>> compare_machines(const config::Config& config,
                                                            const model::ModelConfig& model,
                                                            const ComparisonRequest& request);

std::string text(const std::vector<ComparedMachine>& machines, const ComparisonRequest& request);
/// {"machines": [{"machine", "spot", "ranks", "layout", "settings", "seconds", "run", "tie",
/// "left_out"}]}.
base::Json to_json(const std::vector<ComparedMachine>& machines);

}  // namespace trireme::plan
