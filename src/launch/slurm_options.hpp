// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/launch/resource_request.hpp"

#include <span>
#include <string>
#include <vector>

/// Options of srun, sbatch and salloc as getopt_long reads them. Private to the room.
namespace trireme::launch {

/// Option with its value. Short options are stored under their long names.
struct OptionWord {
  std::string name;
  std::string value;
};

struct OptionWords {
  std::vector<OptionWord> options;
  /// First word that is no option.
  std::string program;
  bool heterogeneous = false;
  bool complete = true;
};

/// Options up to the command (srun and salloc, sbatch's script), parsed as Slurm does; supports
/// those of Slurm 22.05 to 24.11, and of other plugins those written with '='.
OptionWords read_options(Command command, std::span<const std::string> words);

}  // namespace trireme::launch
