// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::run> run{.concern = Concern::running};

constexpr Key run_rows[] = {
    run.key<&RunOptions::directory>("auto", {.auto_rule = "runs/<run.name>"},
                                    "Run directory: configuration, metrics, logs and checkpoints. "
                                    "A run resumes from its own directory."),
    run.key<&RunOptions::name>("run", "Name of the run in metrics and as its folder under runs/."),
    run.key<&RunOptions::tags>("", "Words to find the run by, copied to versions.json."),
    run.key<&RunOptions::binding>(
        "auto",
        "Whether ranks are bound: auto gives each rank whole cores of its own, as many as the "
        "others; none leaves it where the launcher put it."),
    run.key<&RunOptions::order>(
        "auto",
        "Which process becomes which rank: topology follows the network (tensor parallelism inside "
        "a node, rings of data parallelism inside a switch, stages near one another), slurm keeps "
        "the launcher's numbers; auto is topology, unless tasks were dealt out by hand (srun "
        "--distribution)."),
    run.key<&RunOptions::job_comment>(
        "10min", {.type = Type::seconds, .unit = "seconds", .range = at_least(0)},
        "How often, at most, step and loss are written into the comment of the Slurm job (squeue "
        "-o %k); in the first minutes every minute, then less often. 0 never; nothing is written "
        "outside of a job, or over somebody else's comment."),
    run.key<&RunOptions::signal_lead>("auto",
                                      {.type = Type::seconds,
                                       .unit = "seconds",
                                       .range = at_least(0),
                                       .auto_rule = "a minute, and three times the longest step "
                                                    "(or batch of an evaluation) and save so far"},
                                      "How long before the job's time limit the run saves and "
                                      "stops with exit code 75. 0 never stops for the limit."),
};

}  // namespace

std::span<const Key> run_keys() {
  return run_rows;
}

}  // namespace trireme::schema
