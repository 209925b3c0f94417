// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/exit_code.hpp"

#include "apps/cli/command.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trireme::apps {

/// The whole command line, ready to parse. The root's name is "trireme".
class CommandLine {
 public:
  CommandLine();

  CLI::App& root() { return *root_; }
  const CLI::App& root() const { return *root_; }
  /// Action of the command that was parsed; empty when none was.
  const Action& action() const { return action_; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }

 private:
  void add(CLI::App& parent, const Command& command);

  std::unique_ptr<CLI::App> root_;
  Action action_;
  bool quiet_ = false;
  bool verbose_ = false;
};

/// Whose the variables of a launcher are: this process's, or those of another start, which it has
/// inherited (runtime::is_inherited()) and which make it no rank.
enum class Variables { own, inherited };

/// Role of a rank in reporting an error that all ranks have before MPI has started.
enum class Voice {
  speaks,
  speaks_late,  ///< first rank of another node: after a delay, if the launcher has not ended it
  silent
};
/// Role by the launcher's number of this process; `speaks` without a launcher.
Voice voice_in(const base::Environment& environment, Variables variables);

/// Runs `body`; every failure ends here, as an exit code and text on stderr. `voice` decides which
/// ranks report errors that all ranks have.
base::ExitCode guarded(const std::function<base::ExitCode()>& body, Voice voice = Voice::speaks);

/// Parses the arguments (without the program's own name) and runs the command.
base::ExitCode run(const std::vector<std::string>& arguments, const base::Environment& environment);

}  // namespace trireme::apps
