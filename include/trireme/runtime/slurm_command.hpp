// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

namespace trireme::runtime {

/// What a command of Slurm said, and how it ended.
struct CommandAnswer {
  int exit_code = 0;
  std::string output;  ///< of its standard output, at most 1 MiB
};

/// Starts `words` as they are (no shell reads them), found on PATH, with nothing to read and its
/// errors hushed, and waits for it; none when it cannot be started, dies by a signal, or has not
/// ended after `patience`, when it is killed.
std::optional<CommandAnswer> run_slurm_command(std::span<const std::string> words,
                                               std::chrono::milliseconds patience);

}  // namespace trireme::runtime
