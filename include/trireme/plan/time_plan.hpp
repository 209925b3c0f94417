// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/run_estimate.hpp"
#include "trireme/predict/step.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::plan {

/// Refuses steps that are not predicted.
base::Status check_predicted(const engine::EngineOptions& options);

/// The training step of these options as a machine would run it: with GPUs as the backend for CUDA
/// does, on cores as that for CPUs does.
predict::Workload workload_of(const engine::EngineOptions& options,
                              const predict::Machine& machine);

/// The same without the FLOPs of matrices that an optimizer updates whole, which take long to
/// count.
predict::Workload workload_without_matrices(const engine::EngineOptions& options,
                                            const predict::Machine& machine);

/// A run's step on a machine that is described in a file.
struct TimePlan {
  std::string machine;
  std::string layout;
  predict::StepPrediction step;
  /// [rank]: bytes of its arrays, and what a GPU of the machine, or the node, has for them, or
  /// train.memory_limit leaves of that.
  std::vector<std::size_t> memory_bytes;
  std::int64_t machine_memory = 0;
  /// The memory is the node's, and all ranks lie on it.
  bool shares_memory = false;
  /// All of its steps.
  RunEstimate run;

  /// Bytes of the largest rank, or of all that share the memory.
  std::size_t needed_bytes() const;
  bool fits() const;
};

/// The failure names the mistakes of the machine file, or the key whose value cannot be predicted;
/// a plan of some ranks alone is refused. `keys`: of the plan, which may limit a rank's memory.
base::Result<TimePlan> plan_time(const MemoryPlan& plan, const schema::Options& keys,
                                 const std::filesystem::path& machine);

/// "predicted on dgx-h100: step 812.3 ms: compute 700.1, ...", and whether it fits.
std::string text(const TimePlan& plan);
/// {"machine", "layout", "seconds", "parts", "memory_bytes", "fits", "run"}.
base::Json to_json(const TimePlan& plan);

}  // namespace trireme::plan
