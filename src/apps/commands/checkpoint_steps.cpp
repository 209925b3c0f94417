// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint list|tag|prune
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/store/object_store.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/commands/checkpoint_paths.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;
using checkpoint::StepFolder;
using checkpoint::Tag;
using checkpoint::VerifyLevel;

/// Temporary folders younger than this may belong to a save that is under way.
constexpr std::chrono::hours idle_before_garbage{1};

constexpr const char* run_meaning = "Run folder, or its checkpoints folder";

Json names_of(const std::vector<Tag>& tags, std::int64_t step) {
  auto names = Json::array();
  for (const auto& tag : tags) {
    if (tag.step == step) names.push_back(tag.name);
  }
  return names;
}

Json facts_of(const checkpoint::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& file : manifest.files) bytes += manifest.stored_bytes(file);
  const auto loss = checkpoint::validation_loss(manifest);
  return {{"tokens", manifest.tokens},
          {"bytes", bytes},
          {"payload_bytes", manifest.contents.payload_bytes()},
          {"files", manifest.files.size()},
          {"validation_loss", loss ? Json(*loss) : Json()},
          {"tool_version", manifest.tool_version}};
}

/// UTC, ISO 8601; null in an object store. Manifests have no time of their own.
Json time_of(const StepFolder& step) {
  if (store::is_url(step.path)) return {};
  struct stat facts {};
  const auto manifest = step.path / "manifest.json";
  if (::stat(manifest.c_str(), &facts) != 0) return {};
  return base::utc_text({facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
}

/// Facts on a step, by the names of the line's members.
Json line_of(const StepFolder& step, const std::vector<Tag>& tags) {
  Json line{{"folder", step.path.string()},
            {"step", step.step},
            {"committed", true},
            {"tier", "shared"},
            {"written", time_of(step)},
            {"tags", names_of(tags, step.step)}};
  const auto report = checkpoint::verify(step.path, VerifyLevel::quick);
  line["good"] = report.good();
  const auto manifest = checkpoint::read_manifest(step.path);
  if (manifest.ok()) line.update(facts_of(*manifest));
  if (!report.good()) line["reason"] = report.damages.front().text;
  return line;
}

Json line_of_uncommitted(const StepFolder& step) {
  return {{"folder", step.path.string()},
          {"step", step.step},
          {"committed", false},
          {"tier", "shared"},
          {"tags", Json::array()},
          {"good", false},
          {"reason", "not committed: it is being written, or a save that was killed has left it"}};
}

/// Columns of the table.
struct Row {
  std::string step;
  std::string written;
  std::string size;
  std::string files;
  std::string tokens;
  std::string loss;
  std::string tags;  ///< begins with a blank
};

std::string text_of(const Row& row) {
  return format("{:<14}  {:<16}  {:>12}  {:>6}  {:>16}  {:>15}{}{}\n", row.step, row.written,
                row.size, row.files, row.tokens, row.loss, row.tags.empty() ? "" : " ", row.tags);
}

/// "2026-11-21 09:37" of "2026-11-21T09:37:34.123Z".
std::string minute_of(const Json& time) {
  constexpr std::size_t length = 16;
  if (!time.is_string()) return "-";
  auto text = time.get<std::string>().substr(0, length);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string text_of(const Json& line) {
  const auto name = std::filesystem::path(line["folder"].get<std::string>()).filename().string();
  std::string tags;
  for (const auto& tag : line["tags"]) tags += " " + tag.get<std::string>();
  if (!line["good"].get<bool>()) {
    return format("{}  not usable: {}{}\n", name, line["reason"].get<std::string>(),
                  tags.empty() ? "" : " (tagged" + tags + ")");
  }
  const auto& loss = line["validation_loss"];
  return text_of(Row{.step = name,
                     .written = minute_of(line["written"]),
                     .size = base::bytes_text(line["bytes"].get<std::uint64_t>()),
                     .files = format("{}", line["files"].get<std::size_t>()),
                     .tokens = format("{}", line["tokens"].get<std::uint64_t>()),
                     .loss = loss.is_null() ? "-" : base::fixed_text(loss.get<double>(), 4),
                     .tags = tags});
}

Action prepare_list(CLI::App& app) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, run_meaning)->required()->type_name("PATH");
  app.add_flag("--json", options->json, "One JSON object a step");
  return [options](Context& context) {
    const auto checkpoints = checkpoints_of(options->path);
    const auto tags = checkpoint::tags(checkpoints);
    std::vector<Json> lines;
    for (const auto& step : checkpoint::list_uncommitted(checkpoints)) {
      lines.push_back(line_of_uncommitted(step));
    }
    for (const auto& step : checkpoint::list(checkpoints)) lines.push_back(line_of(step, tags));
    if (lines.empty()) {
      base::log::info("checkpoint", "there is no step in '{}'", checkpoints.string());
    } else if (!options->json) {
      context.out.write(text_of(
          Row{"step", "written (UTC)", "size", "files", "tokens", "validation loss", " tags"}));
    }
    for (const auto& line : lines) {
      context.out.write(options->json ? base::json_text(line) + "\n" : text_of(line));
    }
    return ExitCode::done;
  };
}

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
  app.add_option("PATH", options->path, run_meaning)->required()->type_name("PATH");
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

Command checkpoint_list_command() {
  return {.name = "list",
          .summary = "Lists the steps of a run, newest first",
          .details =
              "Size, files, tokens, validation loss (where the step was evaluated) and "
              "tags. Saves that are not committed come first.",
          .prepare = prepare_list};
}

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
