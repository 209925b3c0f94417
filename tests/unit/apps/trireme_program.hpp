// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/program.hpp"

#include <string>
#include <vector>

namespace trireme::tests {

/// The built executable with these arguments, in an environment with nothing of ours.
inline ProgramStart trireme_start(std::vector<std::string> arguments) {
  return {.program = TRIREME_EXECUTABLE, .arguments = std::move(arguments)};
}

inline ProgramEnd run_trireme(std::vector<std::string> arguments) {
  return run_program(trireme_start(std::move(arguments)));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trireme::tests
