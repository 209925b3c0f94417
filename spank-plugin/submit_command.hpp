// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/launch/resource_request.hpp"

#include <string>
#include <vector>

/// The submitting command itself: its name, its words, its batch script and Slurm's configuration.
namespace trireme::spank {

/// sbatch or salloc, by the name of this program.
launch::Command allocating_command();

/// Command line of this process, without the program's own name.
std::vector<std::string> command_arguments();

/// The batch script that sbatch reads: the file `program`, or standard input where that is a file.
/// Empty when it cannot be known (a pipe, --wrap).
std::string batch_script(const std::string& program, const std::vector<std::string>& arguments);

/// MpiDefault of slurm.conf; empty when it cannot be known.
std::string default_mpi(const std::string& slurm_conf);

}  // namespace trireme::spank
