// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <string>
#include <vector>

namespace trireme::apps {

/// Checks the configuration against the rules of the run that it describes: the model's, the
/// layout's on the smallest possible number of ranks, those of batches and stages, with the
/// functions of plan and engine. Returns the checks that were not possible, and why: one clause
/// each.
base::Result<std::vector<std::string>> check_run(const config::Config& config);

/// Warnings about keys that a later file replaces, with the remedy, one line each; empty where
/// files agree.
std::vector<std::string> replacement_texts(const std::vector<std::string>& files);

}  // namespace trireme::apps
