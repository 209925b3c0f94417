#pragma once

#include "trireme/launch/geometry.hpp"

#include <string>
#include <vector>

namespace trireme::spank {

/// What the site's line in plugstack.conf says.
struct Settings {
  enum class Limit { keep, unlimited, none };
  /// base=FOLDER: where root keeps what belongs to jobs; %h is the node's host name.
  std::string base = "/var/spool/trireme";
  /// memlock=keep|unlimited|none: RDMA registers memory that must stay locked, but a limit is the
  /// site's to raise.
  Limit memlock = Limit::keep;
  /// core=keep|none|unlimited: a core file of every rank can fill a file system.
  Limit core = Limit::keep;
};

/// Arguments that are wrong are reported and left out: a typing error of the site stops no job.
Settings read_settings(const std::vector<std::string>& arguments);

/// sbatch or salloc, by the name of this program.
launch::Command allocator();

/// This process's command line, without the program's own name.
std::vector<std::string> own_arguments();

/// The batch script that sbatch reads: the file `program`, or standard input where that is a file.
/// Empty when it cannot be known (a pipe, --wrap).
std::string batch_script(const std::string& program, const std::vector<std::string>& arguments);

/// MpiDefault of slurm.conf; empty when it cannot be known.
std::string default_mpi(const std::string& slurm_conf);

}  // namespace trireme::spank
