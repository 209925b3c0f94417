// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint prune
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/runtime/identity.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/commands/checkpoint_paths.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;

/// Temporary folders younger than this may belong to a save that is under way.
constexpr std::chrono::hours idle_before_garbage{1};

struct PruneOptions {
  std::string path;
  checkpoint::Retention retention;
  bool only_shows = false;
  bool json = false;
};

std::vector<std::filesystem::path> prune(const PruneOptions& options, Context& context) {
  const auto checkpoints = checkpoints_of(options.path);
  std::vector<std::filesystem::path> folders;
  if (options.only_shows) {
    for (const auto& step : checkpoint::steps_to_prune(checkpoints, options.retention)) {
      folders.push_back(step.path);
    }
    return folders;
  }
  const auto job = base::value_or_throw(runtime::identify(context.environment)).job;
  const auto run = run_of(options.path);
  checkpoint::check_may_remove(checkpoints, run);
  const auto lock = base::value_or_throw(record::RunLock::take(run, job));
  folders = checkpoint::prune(checkpoints, options.retention);
  const auto garbage = checkpoint::collect_garbage(checkpoints, idle_before_garbage);
  folders.insert(folders.end(), garbage.begin(), garbage.end());
  return folders;
}

Action prepare_prune(CLI::App& app) {
  auto options = std::make_shared<PruneOptions>();
  auto& retention = options->retention;
  app.add_option("PATH", options->path, run_and_folder)->required()->type_name("PATH");
  app.add_option("--keep-last", retention.keep_last, "How many of the newest good steps stay")
      ->type_name("N")
      ->required()
      ->check(in_range(1, 1 << 30).description(""));
  app.add_option("--keep-every", retention.keep_every, "Multiples of so many steps stay, too")
      ->type_name("STEPS")
      ->check(zero_or_more());
  app.add_option("--keep-best", retention.keep_best,
                 "So many steps of the lowest validation loss stay, too")
      ->type_name("N")
      ->check(in_range(0, 1 << 30).description(""));
  app.add_flag("--dry-run", options->only_shows,
               "Shows what would be removed, and removes nothing");
  app.add_flag("--json", options->json, "One JSON object a removed folder");
  return [options](Context& context) {
    const char* verb = options->only_shows ? "would remove" : "removed";
    for (const auto& folder : prune(*options, context)) {
      context.out.write(options->json ? base::json_text(Json{{"removed", folder.string()}}) + "\n"
                                      : format("{} {}\n", verb, folder.string()));
    }
    return ExitCode::done;
  };
}

}  // namespace

Command checkpoint_prune_command() {
  return {.name = "prune",
          .summary = "Removes all but the newest good steps of a run",
          .details =
              "At least one good step always stays, and so do tagged ones. Folders that "
              "saves left half-written are removed too once nobody has touched them for an "
              "hour.",
          .prepare = prepare_prune};
}

}  // namespace trireme::apps
