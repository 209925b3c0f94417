// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/cli/command.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace trireme::apps {

/// An option or a positional argument as people read it.
struct OptionText {
  /// "-q,--quiet", "--set SECTION.KEY=VALUE", "CONFIG...".
  std::string title;
  /// Description that ends with the default.
  std::string description;
  /// Names alone, longest form first: "--quiet", "-q". Empty for positional arguments.
  std::vector<std::string> names;
  std::string group;
  /// Allowed values, where the option has a fixed set.
  std::vector<std::string> choices;
  bool takes_value = false;
  bool required = false;
};

/// The CLI11 tree as data: help, man page, completion and suggestions are printed from it.
struct CommandText {
  /// "trireme config show".
  std::string path;
  std::string name;
  std::string summary;
  std::string details;
  std::string group;
  std::vector<OptionText> positionals;
  std::vector<OptionText> options;
  std::vector<CommandText> subcommands;
};
CommandText describe(const CLI::App& app);

/// "trireme config show [CONFIG...] [OPTION...]".
std::string usage_line(const CommandText& command);

/// Output of -h: usage, summary, subcommands by group, arguments, options by group, details. `root`
/// adds the options of every command.
std::string help_text(const CommandText& command, const CommandText& root);

}  // namespace trireme::apps
