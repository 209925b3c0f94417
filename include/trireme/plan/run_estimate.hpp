// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/step.hpp"
#include "trireme/schema/options.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace trireme::plan {

/// Terms on which nodes are had: until the run ends, or until others pay more.
enum class Tenure { own, spot };

/// Time, money and energy of a whole run.
struct RunEstimate {
  int nodes = 1;
  /// All of it: steps, saves, restarts, and what failures make it do again; infinite where they
  /// leave no time for steps.
  double hours = 0;
  /// Part of them in which steps are done that stay.
  double effective = 1;
  /// Time between failures of any node, and between saves so that least is lost; nothing where the
  /// machine's file has neither failures nor a rate of its disk.
  std::optional<double> failure_hours;
  std::optional<double> save_minutes;
  /// Nothing where the machine's file has no price, no power, no carbon.
  std::optional<double> cost;
  std::optional<double> kwh;
  std::optional<double> kg_co2;

  bool ends() const { return std::isfinite(hours); }
};

/// Step and ranks of a run, and the bytes of its checkpoint.
struct RunSize {
  int ranks = 1;
  std::int64_t steps = 0;
  double state_bytes = 0;
  /// Checkpoints are written beside training.
  bool saves_beside = true;
};

/// Part of a step in which a rank waits for nothing.
double busy_share(const predict::StepPrediction& step);

/// Watts of a node whose ranks are busy for this part of the time. A file that does not say what
/// waiting takes has it taken for computing.
double node_watts(const predict::Site& site, double busy_share);

/// Energy of so many hours of nodes of these watts, and its CO2; kilowatt-hours, kilograms.
double kwh_of(const predict::Site& site, double node_hours, double watts);
double kg_of(const predict::Site& site, double kwh);

/// Steps of a run that is configured so, and what it saves: masters and states of its rule.
RunSize run_size(const schema::Options& keys, const model::ModelConfig& model, int ranks);

RunEstimate estimate_run(const predict::Machine& machine, Tenure tenure, const RunSize& run,
                         const predict::StepPrediction& step);

/// "12.3 h on 8 nodes, 98.9 % of them training; a failure every 31 h, a save every 14 min"; of one
/// that does not end, that.
std::string text(const RunEstimate& estimate);
/// {"nodes", "hours" (null without an end), "effective", "failure_hours", "save_minutes", "cost",
/// "kwh", "kg_co2e"}.
base::Json to_json(const RunEstimate& estimate);

}  // namespace trireme::plan
