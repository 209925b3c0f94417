// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/exit_code.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include <array>
#include <filesystem>
#include <system_error>

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view disk_is_full = "No space left";

/// A row of docs/failure-guide.md: what the texts of a postmortem hold, and what to do.
struct Remedy {
  std::string_view sign;
  std::string_view advice;
};

constexpr std::string_view report_it =
    "a defect: please report it with versions.json and that rank's log";

/// The first that fits the cause counts.
constexpr std::array remedies{
    Remedy{"out of memory",
           "the kernel killed it for memory: ask for more (--mem), start fewer ranks on a node, or "
           "use a smaller train.micro_batch or train.activation_checkpointing; `trireme plan` "
           "counts the bytes"},
    Remedy{disk_is_full, "the disk is full: make room"},
    Remedy{"leaves no time for a step",
           "ask for more time (--time), or set run.signal_lead to less than the limit"},
    Remedy{"not finite",
           "training diverged: lower optimizer.learning_rate or set optimizer.clip_norm, and go on "
           "from the checkpoint before"},
    Remedy{
        "which is TCP",
        "NCCL found no way over the InfiniBand or RoCE NICs: see `ibv_devinfo` on the nodes, and "
        "that NCCL_NET, NCCL_IB_DISABLE, NCCL_IB_HCA and UCX_TLS allow them; "
        "comm.require_rdma = false goes on over TCP"},
    Remedy{"MPI sees",
           "start with srun --mpi=pmix, or with the mpirun that trireme was built with"},
    Remedy{"signal SIGKILL",
           "somebody or the system killed that task: the system's log on its node says who "
           "(memory first); then start again"},
    Remedy{"signal SIGSEGV", report_it},
    Remedy{"signal SIGABRT", report_it},
    Remedy{"signal SIGBUS",
           "a file that was mapped became shorter, or its disk failed: see that rank's log and "
           "the system's; then start again"},
    Remedy{"signal SIGILL", report_it},
    Remedy{"signal SIGFPE", report_it},
    Remedy{"died without a word",
           "look at that rank's log and at the system's on its node (memory first); then start "
           "again: it goes on from the newest checkpoint"},
    Remedy{"stopped by a signal",
           "somebody stopped that process (SIGSTOP, a debugger): continue or end it, and start "
           "again"},
    Remedy{"did not come",
           "those ranks hang or are slow: see their logs; raise comm.timeout only if they are slow "
           "for a reason"},
};

std::string_view by_exit_code(int code) {
  switch (static_cast<base::ExitCode>(code)) {
    case base::ExitCode::done:
    case base::ExitCode::requeue:
      return {};
    case base::ExitCode::usage:
      return "mend what the text names, and start again";
    case base::ExitCode::launch:
      return "start as many ranks as the mesh has, all with the same configuration";
    case base::ExitCode::topology:
      return "see `trireme topology --plan` on that node, and the backends that `trireme "
             "--version` "
             "names";
    case base::ExitCode::peer:
      return "see the log of the rank that failed first; then start again: it goes on from the "
             "newest checkpoint";
    case base::ExitCode::checkpoint:
      return "see `trireme checkpoint verify` of the run; the text names file and remedy";
    case base::ExitCode::internal:
      return report_it;
  }
  return {};
}

/// Advice for a final state that Slurm gave the job.
std::string_view by_state(std::string_view state) {
  if (state == "OUT_OF_MEMORY") return remedies.front().advice;
  if (state == "NODE_FAIL") return "a node failed: submit again; Slurm chooses another";
  if (state == "TIMEOUT") {
    return "the time limit ended the job before it could save: raise run.signal_lead, and let "
           "slurm/train.sbatch requeue it";
  }
  if (state == "CANCELLED") return "the job was cancelled: submit again to go on";
  if (state == "PREEMPTED") return "the job was preempted: submit again with --requeue";
  return {};
}

std::string where_it_goes_on(const Postmortem& postmortem) {
  if (postmortem.newest_checkpoint) {
    return base::format(
        "starting again goes on after step {}: trireme train --resume {}",
        *postmortem.newest_checkpoint,
        base::shell_word(base::absolute(postmortem.run).lexically_normal().string()));
  }
  if (postmortem.checkpoint_count > 0) {
    return "no checkpoint is usable (see the notes): restore one from a copy; what is bad in them "
           "says `trireme checkpoint verify`";
  }
  return postmortem.last_step > 0 ? "no checkpoint was committed: starting again begins anew; set "
                                    "checkpoint.every_steps or every_minutes"
                                  : "";
}

/// The file STOP in the run directory, which ends every start at once; empty where there is none.
std::string about_stop_file(const Postmortem& postmortem) {
  const auto file = postmortem.run / "STOP";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  return base::format("remove '{}' first: it stops every start", file.string());
}

}  // namespace

std::vector<std::string> advice_for(const Postmortem& postmortem) {
  std::vector<std::string> advice;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) advice.emplace_back(text);
  };
  switch (postmortem.ending) {
    case Ending::finished:
      add("nothing: all steps are done");
      return advice;
    case Ending::stopped:
      add("nothing: the run stopped in good order");
      add(about_stop_file(postmortem));
      add(where_it_goes_on(postmortem));
      return advice;
    case Ending::failed:
    case Ending::unknown:
      break;
  }
  add(by_state(postmortem.slurm.state));
  if (postmortem.cause) {
    const auto said = postmortem.cause->end_of_task + "\n" + postmortem.cause->text;
    for (const auto& remedy : remedies) {
      if (said.find(remedy.sign) == std::string::npos) continue;
      if (advice.empty() || advice.front() != remedy.advice) add(remedy.advice);
      if (remedy.sign == disk_is_full && postmortem.checkpoint_count > 1) {
        add("or keep fewer checkpoints: lower checkpoint.keep_last");
      }
      break;
    }
  }
  if (advice.empty() && postmortem.exit_code) add(by_exit_code(*postmortem.exit_code));
  if (advice.empty() && postmortem.ending == Ending::unknown) {
    add("no rank left a word and no end was noted: the run is under way, or all of it was killed "
        "at "
        "once (see `sacct -j JOB`, and the system's log on its nodes)");
  }
  add(about_stop_file(postmortem));
  add(where_it_goes_on(postmortem));
  return advice;
}

}  // namespace trireme::postmortem
