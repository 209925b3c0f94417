// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/plan/layout_choice.hpp"
#include "trireme/predict/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::tests {

/// A model of four layers whose vocabulary no degree divides, eight sequences a step; with further
/// settings "section.key=value".
config::Config small_config(std::vector<std::string> settings = {});
model::ModelConfig model_of(const config::Config& config);

/// The configuration with a layout's settings.
config::Config with_layout(const config::Config& config, const plan::LayoutChoice& choice);

/// Two GPUs a node, with so much memory.
predict::Machine small_machine(std::int64_t memory);

/// All settings of layouts on so many ranks, with all that they may compute again.
std::vector<plan::LayoutChoice> all_layouts(const config::Config& config, int ranks);

}  // namespace trireme::tests
