// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/placement.hpp"
#include "trireme/report/run_view.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Bytes, rates and layers behind the findings.
namespace trireme::report {

/// Notes of the newest start on every step (docs/run-directory.md); absent or empty where it has
/// not.
struct StepFacts {
  double tokens = telemetry::absent;
  double tensor_bytes = telemetry::absent;
  double message_bytes = telemetry::absent;
  double gradient_bytes = telemetry::absent;
  /// Layers of each position of the model, stage after stage, chunk after chunk.
  std::vector<int> stage_layers;
};
StepFacts step_facts(const RunView& run);

/// True where all ranks of each group of this axis are on one node; false where it is not known.
bool is_within_nodes(const RunView& run, layout::Axis axis);
/// The engines that compute: "processors", "GPUs", or both where it is not known.
std::string_view engines_of(const RunView& run);

/// "0.90 GB/s", "12.3 MB/s": powers of ten, as bench comm has them.
std::string rate_text(double bytes, double milliseconds);
/// ": 1.20 GiB a step at 0.90 GB/s"; empty where bytes or time are not known or nothing.
std::string traffic_text(double bytes, double milliseconds);

/// The hindrance that kept ranks from their cores in the middle one of the measurements with one,
/// and what to do; empty where these are less than `least_share` of the time.
std::string hindered_text(std::span<const telemetry::ProcessorsLine> lines, double least_share);

/// Where stages wait unequally: "move 2 layers from stage 1 to stage 0 (parallel.stage_layers =
/// 18,14)". `difference`: of what the two wait, in shares of a step; `layer_share`: of a stage's
/// work. Without known layers only that a layer is to be moved.
std::string move_text(const StepFacts& facts, std::size_t busiest, std::size_t idlest,
                      double difference, double layer_share, const layout::Placement& placement);

}  // namespace trireme::report
