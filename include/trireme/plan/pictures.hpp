// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/engine/memory.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/run_estimate.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/timeline.hpp"
#include "trireme/schema/options.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Pictures of a plan on a machine, and the numbers in them.
namespace trireme::plan {

/// A layout's step with another number of data-parallel ranks.
struct ScaledStep {
  int ranks = 1;
  std::int64_t global_batch = 0;
  double seconds = 0;
  /// Tokens for each rank's second, over those of the fewest ranks.
  double efficiency = 1;
  /// All steps of a run.
  RunEstimate run = {};
};

struct Pictures {
  std::string machine;
  std::string layout;
  predict::Timeline timeline;
  /// In ascending order of ranks: for one batch, and for one batch on each data-parallel rank.
  std::vector<ScaledStep> strong;
  std::vector<ScaledStep> weak;
  /// [stage]: memory of its largest rank.
  std::vector<engine::MemoryUse> memory;
  /// Bytes that a rank's arrays may take; 0 where ranks share the node's.
  std::size_t room = 0;

  /// Whether runs have prices.
  bool has_prices() const { return !strong.empty() && strong.front().run.cost.has_value(); }
};

/// A picture by the name of its file.
struct PictureFile {
  std::string name;
  std::string svg;
};

/// The pictures of a plan of all ranks, whose values `keys` are. Sizes are the plan's, doubled and
/// halved while the layout is legal. Refuses what plan_time() refuses.
base::Result<Pictures> pictures_of(const MemoryPlan& plan, const schema::Options& keys,
                                   const predict::Machine& machine);

/// timeline.svg, strong-scaling.svg, weak-scaling.svg and memory.svg, and where runs have prices
/// pareto.svg.
std::vector<PictureFile> picture_files(const Pictures& pictures);
/// {"layout", "timeline": {"seconds", "rows": [{"stage", "rank", "alike", "spans": [{"kind",
/// "begin", "end", "micro_batch", "virtual_stage", "tensor"}]}]}, "strong_scaling": [{"ranks",
/// "global_batch", "seconds", "efficiency", "run"}], "weak_scaling": the same, "memory": [{purpose:
/// bytes, .., "total"}], "memory_room"}.
base::Json to_json(const Pictures& pictures);

}  // namespace trireme::plan
