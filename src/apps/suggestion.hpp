#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace trireme::apps {

/// What is wrong with an argument that `app` has no place for: an unknown command or option with
/// its nearest neighbour, or one argument too many.
std::string surplus_text(const CLI::App& app, const std::string& argument);

}  // namespace trireme::apps
