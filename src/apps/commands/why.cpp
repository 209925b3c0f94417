// SPDX-License-Identifier: Apache-2.0
// trireme why
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include "apps/cli/commands.hpp"
#include "apps/runs/checkpoints_in.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct WhyOptions {
  std::string run;
  std::vector<std::string> records;
  bool log = false;
  bool all = false;
  bool no_slurm = false;
  bool json = false;
};

base::ExitCode show_log(const WhyOptions& options, Context& context) {
  std::vector<std::string> notes;
  const auto attempts = options.all ? postmortem::Attempts::all : postmortem::Attempts::last;
  for (const auto& line : postmortem::read_logs(options.run, attempts, notes)) {
    if (options.json) {
      const base::Json json{{"time_ms", line.time_ms}, {"level", line.level}, {"rank", line.rank},
                            {"node", line.node},       {"room", line.room},   {"text", line.text}};
      context.out.write(base::json_text(json) + "\n");
    } else {
      context.out.write(base::format("{} {:<7} r{:04} {} {}: {}\n",
                                     postmortem::utc_text(line.time_ms), line.level, line.rank,
                                     line.node, line.room, line.text));
    }
  }
  return base::ExitCode::done;
}

base::ExitCode show_postmortem(const WhyOptions& options, Context& context) {
  postmortem::Evidence evidence;
  evidence.checkpoints = checkpoints_in;
  evidence.records.assign(options.records.begin(), options.records.end());
  // Inside of the job, its own node's record is readable.
  if (const auto record = context.environment.get("TRIREME_LAUNCH_RECORD")) {
    evidence.records.emplace_back(*record);
  }
  if (!options.no_slurm)
    evidence.slurm = postmortem::ask_slurm(postmortem::job_of_run(options.run));
  const auto postmortem = base::value_or_throw(postmortem::examine(options.run, evidence));
  context.out.write(options.json ? base::json_text(postmortem::to_json(postmortem), 2) + "\n"
                                 : postmortem::text_of(postmortem));
  return base::ExitCode::done;
}

Action prepare_why(CLI::App& app) {
  auto options = std::make_shared<WhyOptions>();
  app.add_option("RUN_DIR", options->run, "The run directory (run.directory)")->required();
  app.add_option(
         "--record", options->records,
         "How tasks ended, as the Slurm plugin noted it on a node; RUN/log/tasks*.jsonl are "
         "read anyway")
      ->type_name("FILE");
  app.add_flag("--log", options->log,
               "The logs of all ranks in one, in the order of time, instead of the postmortem");
  app.add_flag("--all", options->all, "With --log: earlier starts of the run, too");
  app.add_flag("--no-slurm", options->no_slurm, "Does not ask sacct and scontrol");
  app.add_flag("--json", options->json, "One JSON object; with --log one for each line");
  return [options](Context& context) {
    return options->log ? show_log(*options, context) : show_postmortem(*options, context);
  };
}

}  // namespace

Command why_command() {
  return {
      .name = "why",
      .summary = "Tells why a run ended: first cause, who, when, what then, what to do",
      .group = "Explanations",
      .details =
          "Reads failure.json, metrics.jsonl and the ranks' logs of the run directory, and what "
          "Slurm and its plugin noted of the job. Ends with 0 whatever it says.",
      .prepare = prepare_why};
}

}  // namespace trireme::apps
