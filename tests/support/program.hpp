// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace trireme::tests {

/// How a started program ended and what it said.
struct ProgramEnd {
  int exit_code = -1;  ///< 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

struct ProgramStart {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  /// The whole environment; nothing is inherited.
  std::map<std::string, std::string> environment = {{"PATH", "/usr/bin:/bin"}};
  std::string in = {};
  /// Where standard output goes instead of into ProgramEnd::out: a path, "closed" (no descriptor
  /// at all) or "unread" (a pipe whose reader is gone).
  std::string out_to = {};
  /// Standard error: a pipe, or a terminal of its own.
  enum class Err { pipe, terminal };
  Err err_to = Err::pipe;
  std::filesystem::path folder = {};
  double timeout_seconds = 60;
};

/// Starts without a shell and waits; throws std::runtime_error when it cannot be started or does
/// not end in time (it is killed then).
ProgramEnd run_program(const ProgramStart& start);

}  // namespace trireme::tests
