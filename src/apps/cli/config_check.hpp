// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <string>
#include <vector>

namespace trireme::apps {

/// Holds the configuration against the rules of the run that it describes: the model's, the
/// layout's on the fewest ranks that it may have, those of batches and stages, as plan and the
/// engine know them. Returns what could not be asked, and why: one clause each.
base::Result<std::vector<std::string>> check_run(const config::Config& config);

/// One line for each key that a later file replaces, and what to do if that was not meant; empty
/// where files agree.
std::vector<std::string> replacement_texts(const std::vector<std::string>& files);

}  // namespace trireme::apps
