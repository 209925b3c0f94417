// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace trireme::apps {

/// "--set train.steps=5" for a key and a value that were written as another trainer takes them:
/// name "train.steps", "steps", "max-steps" or a near one. Empty when no key goes by that name.
std::string setting_meant(const std::string& name, const std::string& value);

/// What is wrong with an argument that `app` has no place for: an option of another level, an
/// unknown command or option with its nearest neighbour or the key that it stands for, or one
/// argument too many. `arguments` are all of the command line.
std::string surplus_text(const CLI::App& app, const std::string& argument,
                         const std::vector<std::string>& arguments);

}  // namespace trireme::apps
