// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/step.hpp"
#include "trireme/predict/workload.hpp"

#include "searcher.hpp"

#include <optional>
#include <string>

/// Sentences about layouts that are not the best. Private to the room.
namespace trireme::plan {

/// "812.3 ms", "10.384 s": digits by which layouts differ.
std::string seconds_text(double seconds);

/// A layout's step, and what its causes are read from.
struct Explained {
  LayoutChoice choice;
  predict::Workload workload;
  predict::StepPrediction step;
  /// Rate of its products over that of large ones.
  double product_share = 1;
};

/// "1.9 s slower: +1.4 s tensor (...), +0.5 s compute (...)": the two parts that differ most from
/// the best layout's, and their causes.
std::string why_slower(const Explained& layout, const Explained& best,
                       const predict::Machine& machine);

/// "does not fit: 94.1 GiB of 80.0 GiB, 14.1 GiB too much; with zero=1 it does"; of one that fits,
/// that its step is too long.
std::string why_without_room(const Misfit& misfit, const std::optional<LayoutChoice>& change);

}  // namespace trireme::plan
