// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/environment.hpp"

#include "apps/cli/output.hpp"
#include "apps/program.hpp"

#include <csignal>
#include <vector>

int main(int argc, char** argv, char** environment) {
  trireme::apps::guard_standard_descriptors();
  // A closed reader shows as a failed write, instead of killing the rank.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(
      trireme::apps::run(arguments, trireme::base::Environment::capture(environment)));
}
