// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/model/model_config.hpp"

#include <functional>
#include <string>

/// The interval between saves by the clock, where checkpoint.every_minutes is auto.
namespace trireme::train {

/// Seconds of a save.
struct SaveCost {
  /// Time in which training stands still.
  double stall = 0;
  /// Time from then on until the save counts, while training goes on.
  double write = 0;
  /// Saves of this start that it is the mean of; 0: an estimate.
  int measured = 0;
};

/// An interval, and what it follows from.
struct SaveInterval {
  double minutes = 0;
  /// Mean time between failures of any node of the job.
  double failure_hours = 0;
  SaveCost save = {};
  /// The same for people.
  std::string sentence = {};
};

/// Chooses the interval of a model's saves by what they cost, or by a better estimate where nothing
/// is measured. Called on the first rank; must not communicate.
using ChooseInterval =
    std::function<base::Result<SaveInterval>(const model::ModelConfig& model, const SaveCost&)>;

}  // namespace trireme::train
