// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

namespace trireme::launch {

/// Output and exit code of a command of Slurm.
struct CommandAnswer {
  int exit_code = 0;
  std::string output;  ///< its standard output, at most 1 MiB
};

/// Runs `words` as they are (without a shell), found on PATH, with empty input and its errors
/// discarded, and waits for it; none when it cannot be started, dies by a signal, or has not ended
/// after `patience`, when it is killed.
std::optional<CommandAnswer> run_slurm_command(std::span<const std::string> words,
                                               std::chrono::milliseconds patience);

}  // namespace trireme::launch
