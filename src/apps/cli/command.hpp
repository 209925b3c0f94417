// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/exit_code.hpp"

#include "apps/cli/output.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace trireme::apps {

/// Arguments of a command's action.
struct Context {
  const base::Environment& environment;
  /// All of the command line, without the program's own name.
  const std::vector<std::string>& arguments;
  /// Standard output: data only. Messages go to the log.
  Output& out;
};

/// Function of a command, called once its arguments are parsed. Users' mistakes and failures of the
/// system are thrown as base::Error (base::value_or_throw), whose code becomes the exit code.
using Action = std::function<base::ExitCode(Context&)>;

/// Command of the tree. Help, man page, completion and suggestions are all made from it.
///
/// To add a command: write src/apps/commands/<name>.cpp (src/apps/runs: those that read run
/// directories) with a function `Command <name>_command()`, declare it in commands.hpp, list it in
/// commands.cpp, and name the file in src/apps/CMakeLists.txt.
struct Command {
  std::string name;
  /// Summary in lists of commands: one line, without a full stop.
  std::string summary;
  /// Heading under which the top level lists it; empty for subcommands.
  std::string group = {};
  /// Paragraphs at the end of its help: examples, exit codes, formats.
  std::string details = {};
  /// Declares options and positional arguments, and returns the action. The action owns the
  /// variables that the options write to. Empty for a command that has subcommands.
  std::function<Action(CLI::App&)> prepare = {};
  std::vector<Command> subcommands = {};
};

}  // namespace trireme::apps
