// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugstack_options.hpp"
#include "slurmstepd_side.hpp"
#include "spank.hpp"
#include "submit_side.hpp"

#include <optional>

namespace trireme::spank {

/// State of the plugin in one process of Slurm: srun, sbatch and salloc (SubmitSide), slurmstepd
/// (SlurmstepdSide), slurmd and its epilog. Each loads the plugin for itself.
class Callbacks {
 public:
  int init(spank_t spank, int count, char** arguments, spank_opt_cb_f note);
  /// Called for inherited options, too, and on nodes twice a step.
  int option(int option_index, const char* argument, bool remote);
  /// The only callback that may refuse, and on the submitting side only.
  int options_done(spank_t spank);

  /// Callbacks in each task's process, as root, then as the user.
  int raise_limits();
  int prepare_task(spank_t spank);
  /// Callbacks in slurmstepd, as root.
  int record_task(spank_t spank);
  int end();
  int job_ended(spank_t spank, int count, char** arguments);

 private:
  PlugstackOptions options_;
  SubmitSide submit_side_;
  /// Present only where the job uses Trireme: otherwise callbacks return at once.
  std::optional<SlurmstepdSide> slurmstepd_side_;
  launch::Contract remote_options_;
};

}  // namespace trireme::spank
