// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/ownership/price.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::ownership {

/// All that is told of a plan of owners.
struct View {
  /// "qwen3, 28 layers": the model in a few words.
  std::string model;
  /// "muon", and where that comes from.
  std::string optimizer;
  std::string optimizer_origin;
  /// None for a rule that does not iterate so.
  std::optional<int> newton_schulz_steps;
  std::vector<OwnedTensor> tensors;
  ChosenPlan choice;
  PricedPlan adamw;
  StepWork work;
  MachineSpeeds machine;
};

/// For people, at most 100 columns: who owns what on at most `most_ranks` ranks, loads, padding,
/// bytes, and the predicted parts of a step beside AdamW's.
std::string text(const View& view, int most_ranks = 16);

/// {"optimizer", "assignment", "ranks", "data_parallel", "tensor_parallel", "max_over_mean",
///  "padding", "bytes_on_wire", "bytes_exchanged", "buckets", "reason",
///  "step_ms": {"reduce", "exchange", "compute", "launch", "gather", "update", "total"},
///  "adamw": {"bytes_on_wire", "step_ms": {..}}, "load": [FLOPs of a rank],
///  "matrices": [{"name", "rows", "columns", "owner": [rank], "flops", and of a shared matrix
///  "ranges": [[begin, end]] of its longer side by owner, "square": [rank]}]}
base::Json json(const View& view);

/// Loads of at most 512 ranks as bars, made of their matrices by shape.
std::string svg(const View& view);

}  // namespace trireme::ownership
