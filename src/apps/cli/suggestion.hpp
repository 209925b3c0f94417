// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace trireme::apps {

/// Suggestion "--set train.steps=5" for a key and a value in the notation of another trainer: name
/// "train.steps", "steps", "max-steps" or a similar one. Empty when no key has such a name.
std::string setting_meant(const std::string& name, const std::string& value);

/// Error text for an argument that `app` does not accept: an option of another level, an unknown
/// command or option with its nearest neighbour or the corresponding key, or one argument too many.
/// `arguments` are all of the command line.
std::string surplus_text(const CLI::App& app, const std::string& argument,
                         const std::vector<std::string>& arguments);

}  // namespace trireme::apps
