// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint tag
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/store/object_store.hpp"

#include "apps/cli/commands.hpp"
#include "apps/commands/checkpoint_paths.hpp"

#include <filesystem>
#include <memory>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;

/// The path of a step without links, dots and a slash at its end.
std::filesystem::path plain(const std::filesystem::path& step) {
  if (!store::is_url(step)) return std::filesystem::canonical(step);
  return step.has_filename() ? step : step.parent_path();
}

/// Refuses to change the tags of another run: a copy may name its checkpoints.
void check_named_run(const std::filesystem::path& path) {
  if (store::is_url(path) || checkpoint::is_step(path)) return;
  const auto checkpoints = checkpoints_of(path);
  if (checkpoints != path) checkpoint::check_may_remove(checkpoints, path);
}

Action prepare_tag(CLI::App& app) {
  struct Options {
    std::string path;
    std::string name;
    checkpoint::Retag retag = checkpoint::Retag::refuse;
    bool removes = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, "Step folder, or run folder (its newest good step)")
      ->required()
      ->type_name("PATH");
  app.add_option("NAME", options->name, "Tag: letters, digits and '._-'")
      ->required()
      ->type_name("NAME");
  auto* move = app.add_flag_callback(
      "--move", [options] { options->retag = checkpoint::Retag::move; },
      "Takes the tag from the step that has it");
  app.add_flag("--remove", options->removes, "Removes the tag, whatever step of the run has it")
      ->excludes(move);
  return [options](Context& context) {
    if (options->removes) {
      const std::filesystem::path path = options->path;
      const auto checkpoints =
          checkpoint::is_step(path) ? plain(path).parent_path() : checkpoints_of(path);
      check_named_run(path);
      base::success_or_throw(checkpoint::remove_tag(checkpoints, options->name));
      context.out.write(format("removed {}\n", (checkpoints / "tags" / options->name).string()));
      return ExitCode::done;
    }
    auto step = base::value_or_throw(checkpoint::find_step(options->path));
    if (options->retag == checkpoint::Retag::move) check_named_run(options->path);
    // Other tags, "." and links are paths of a step, too.
    step.path = plain(step.path);
    base::success_or_throw(checkpoint::add_tag(step, options->name, options->retag));
    context.out.write(format("{}\n", (step.path.parent_path() / "tags" / options->name).string()));
    return ExitCode::done;
  };
}

}  // namespace

Command checkpoint_tag_command() {
  return {.name = "tag",
          .summary = "Gives a step a name, and keeps it from being removed",
          .details =
              "The tag is a link in the run's checkpoints/tags, which every command takes "
              "as the step's path. Training that removes old steps leaves tagged ones.\n"
              "Example: trireme checkpoint tag runs/a/checkpoints/step-000001200 "
              "before-new-data",
          .prepare = prepare_tag};
}

}  // namespace trireme::apps
