// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/train/save_interval.hpp"

/// checkpoint.every_minutes = auto: the interval that a plan says, by what saves take in the run.
namespace trireme::apps {

/// Fails (usage) where the interval is auto and the machine's file does not say how often nodes
/// fail.
base::Status check_save_interval(const config::Config& config);

/// Chooses the interval of a run's saves on so many ranks and nodes.
train::ChooseInterval interval_chooser(const config::Config& config, int ranks, int nodes);

}  // namespace trireme::apps
