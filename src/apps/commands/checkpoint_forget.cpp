// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint forget-nodes
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/schema/quoted.hpp"

#include "apps/cli/commands.hpp"

#include <filesystem>
#include <memory>

namespace trireme::apps {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;
using base::format;

struct Options {
  std::string run;
  std::string local;
  bool json = false;
};

/// checkpoint.local_directory of the run's newest start.
fs::path local_directory_of(const fs::path& run) {
  const auto text =
      base::value_or_throw(base::read_text_file(run / "config.resolved.conf", ExitCode::usage));
  const auto local = config::resolved_value(text, "checkpoint.local_directory");
  const auto folder = schema::from_recorded(local.value_or(""));
  if (!folder.empty()) return folder;
  throw base::Error(ExitCode::usage,
                    format("run '{}' has no checkpoint.local_directory (its nodes hold nothing of "
                           "it); name the folder with --local if an earlier start had one",
                           run.string()));
}

void refuse_running(const fs::path& run) {
  const auto holder = record::living_holder(run);
  if (!holder) return;
  throw base::Error(ExitCode::launch,
                    format("run '{}' is being trained by process {} on '{}' (its nodes' storage is "
                           "in use); stop it first: touch {}",
                           run.string(), holder->process, holder->host, (run / "STOP").string()));
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("RUN", options->run, "Run folder")->required()->type_name("RUN");
  app.add_option("--local", options->local,
                 "Folder of the nodes' own storage; without it, the run's "
                 "checkpoint.local_directory")
      ->type_name("FOLDER");
  app.add_flag("--json", options->json, "One JSON object a removed folder");
  return [options](Context& context) {
    const fs::path run = options->run;
    const fs::path local =
        options->local.empty() ? local_directory_of(run) : fs::path(options->local);
    refuse_running(run);
    const auto folders = checkpoint::forget_node_folders(local, run);
    for (const auto& folder : folders) {
      context.out.write(options->json
                            ? base::json_text(base::Json{{"removed", folder.string()}}) + "\n"
                            : format("removed {}\n", folder.string()));
    }
    if (folders.empty()) {
      base::log::local::info("checkpoint", "nothing of '{}' lies in '{}' on this node",
                             run.string(), local.string());
    }
    return ExitCode::done;
  };
}

}  // namespace

Command checkpoint_forget_nodes_command() {
  return {.name = "forget-nodes",
          .summary = "Removes the steps that a run has left in this node's own storage",
          .details =
              "A run that was killed leaves its newest steps there, so that the next start "
              "goes on from them. Steps in the run directory stay. To be called on each "
              "node:\n"
              "Example: srun --ntasks-per-node=1 trireme checkpoint forget-nodes runs/a",
          .prepare = prepare};
}

}  // namespace trireme::apps
