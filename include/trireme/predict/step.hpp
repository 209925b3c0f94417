// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/time.hpp"
#include "trireme/predict/workload.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace trireme::predict {

/// Work of a rank at a time of a step, or its reason to wait.
enum class Part { compute, tensor, pipeline, bubble, data, optimizer };
inline constexpr std::array<std::string_view, 6> part_names{"compute", "tensor", "pipeline",
                                                            "bubble",  "data",   "optimizer"};

/// Times by part.
class Parts {
 public:
  Time& operator[](Part part) { return times_[static_cast<std::size_t>(part)]; }
  Time operator[](Part part) const { return times_[static_cast<std::size_t>(part)]; }
  Time total() const;
  bool operator==(const Parts&) const = default;

 private:
  std::array<Time, part_names.size()> times_{};
};

/// A step, as it passes on the rank that computes longest.
struct StepPrediction {
  Parts parts;
  int stage = 0;
  /// The same step on the first rank, whose parts runs measure.
  Parts of_first_rank;

  Time total() const { return parts.total(); }
};

/// Days of the longest step that is predicted: a longer one is none that anyone runs.
inline constexpr double longest_step_days = 100;

/// Equal ranks are simulated once, or each by itself (for tests: the result is the same).
enum class Folding { equal_ranks, none };

/// Simulates one step, in the steady state of a run. Refuses schedules and assignments of layers
/// that cannot be, and longer steps, with the key of a configuration that says so.
base::Result<StepPrediction> predict_step(const Machine& machine, const Workload& workload,
                                          Folding folding = Folding::equal_ranks);

/// "step 14.66 s on 64 ranks: ...", a line for each part.
std::string text(const StepPrediction& prediction);
/// {"seconds": ..., "parts": {"compute": ...}}.
base::Json to_json(const StepPrediction& prediction);

}  // namespace trireme::predict
