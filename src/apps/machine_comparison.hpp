// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/plan/machine_comparison.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace trireme::apps {

/// Options --compare, --data and --spot of trireme plan.
void add_comparison(CLI::App& app, plan::ComparisonRequest& request);

/// Table of the machines, or JSON; throws the user's mistakes.
std::string compared(const config::Config& config, const model::ModelConfig& model,
                     const plan::ComparisonRequest& request, bool json);

}  // namespace trireme::apps
