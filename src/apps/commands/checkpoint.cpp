// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint inspect|verify|list|prune (export, import: files of their own)
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/run_lock.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;
using checkpoint::StepFolder;
using checkpoint::VerifyLevel;

/// Temporary folders younger than this may belong to a save that is under way.
constexpr std::chrono::hours idle_before_garbage{1};

struct Options {
  std::string path;
  bool json = false;
  bool quick = false;
  int keep_last = 1;
};

std::shared_ptr<Options> options_of(CLI::App& app, const char* meaning) {
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, meaning)->required()->type_name("PATH");
  return options;
}

/// The folder that holds the steps of a run.
std::filesystem::path checkpoints_of(const std::filesystem::path& path) {
  auto inside = checkpoint::checkpoints_of_run(path);
  if (std::filesystem::is_directory(inside)) return inside;
  if (std::filesystem::is_directory(path)) return path;
  throw base::Error(ExitCode::checkpoint,
                    format("'{}' is no folder (a run folder or its checkpoints folder is needed)",
                           path.string()));
}

/// Run of such a folder, which is the path to lock. A folder of steps without a run is its own.
std::filesystem::path run_of(const std::filesystem::path& checkpoints) {
  const auto path = std::filesystem::absolute(checkpoints / ".").lexically_normal().parent_path();
  return path.filename() == "checkpoints" ? path.parent_path() : path;
}

/// Step at the path, or all steps of a run, newest first.
std::vector<StepFolder> steps_of(const std::filesystem::path& path) {
  if (std::filesystem::exists(path / "manifest.json")) return {{path, 0}};
  auto steps = checkpoint::list(checkpoints_of(path));
  if (steps.empty()) {
    throw base::Error(ExitCode::checkpoint,
                      format("no checkpoint in '{}' (a step folder, a run folder or its "
                             "checkpoints folder is needed)",
                             path.string()));
  }
  return steps;
}

Action prepare_inspect(CLI::App& app) {
  auto options = options_of(app, "Step folder, or run folder (its newest step)");
  app.add_flag("--json", options->json, "One JSON object, with the saved state in full");
  return [options](Context& context) {
    const auto step = base::value_or_throw(checkpoint::find_step(options->path));
    const auto manifest = base::value_or_throw(checkpoint::read_manifest(step.path));
    context.out.write(options->json ? checkpoint::inspect_json(manifest).dump(2) + "\n"
                                    : checkpoint::inspect_text(manifest));
    return ExitCode::done;
  };
}

Json json_of(const checkpoint::VerifyReport& report) {
  auto damages = Json::array();
  for (const auto& damage : report.damages) {
    damages.push_back({{"file", damage.file},
                       {"begin", damage.begin},
                       {"end", damage.end},
                       {"tensors", damage.tensors},
                       {"text", damage.text}});
  }
  return {{"folder", report.folder.string()},
          {"good", report.good()},
          {"checked_bytes", report.checked_bytes},
          {"damages", std::move(damages)}};
}

std::string text_of(const checkpoint::VerifyReport& report) {
  auto text =
      format("{}: {}\n", report.folder.string(),
             report.good() ? format("good, {} checked", base::bytes_text(report.checked_bytes))
                           : format("damaged in {} places", report.damages.size()));
  for (const auto& damage : report.damages) text += format("  {}\n", damage.text);
  return text;
}

Action prepare_verify(CLI::App& app) {
  auto options = options_of(app, "Step folder, or run folder (all its steps)");
  app.add_flag("--quick", options->quick, "Manifest and sizes of files alone, not their bytes");
  app.add_flag("--json", options->json, "One JSON object a step");
  return [options](Context& context) {
    bool all_good = true;
    for (const auto& step : steps_of(options->path)) {
      const auto report =
          checkpoint::verify(step.path, options->quick ? VerifyLevel::quick : VerifyLevel::full);
      // A training run meanwhile removes its oldest steps, whole.
      if (std::error_code ignored; !report.good() && !std::filesystem::exists(step.path, ignored)) {
        base::log::info("checkpoint", "'{}' was removed meanwhile", step.path.string());
        continue;
      }
      all_good = all_good && report.good();
      context.out.write(options->json ? json_of(report).dump() + "\n" : text_of(report));
      context.out.flush();
    }
    return all_good ? ExitCode::done : ExitCode::checkpoint;
  };
}

Json line_of(const StepFolder& step) {
  Json line{{"folder", step.path.string()}, {"step", step.step}};
  const auto report = checkpoint::verify(step.path, VerifyLevel::quick);
  line["good"] = report.good();
  if (const auto manifest = checkpoint::read_manifest(step.path); manifest.ok()) {
    line["tokens"] = manifest->tokens;
    line["payload_bytes"] = manifest->contents.payload_bytes();
    line["files"] = manifest->files.size();
    line["tool_version"] = manifest->tool_version;
  }
  if (!report.good()) line["reason"] = report.damages.front().text;
  return line;
}

std::string text_of_line(const Json& line) {
  const auto name = std::filesystem::path(line["folder"].get<std::string>()).filename().string();
  if (!line["good"].get<bool>()) {
    return format("{}  not usable: {}\n", name, line["reason"].get<std::string>());
  }
  return format("{}  {:>12}  {:>4} files  {:>14} tokens\n", name,
                base::bytes_text(line["payload_bytes"].get<std::uint64_t>()),
                line["files"].get<std::size_t>(), line["tokens"].get<std::uint64_t>());
}

Action prepare_list(CLI::App& app) {
  auto options = options_of(app, "Run folder, or its checkpoints folder");
  app.add_flag("--json", options->json, "One JSON object a step");
  return [options](Context& context) {
    for (const auto& step : checkpoint::list(checkpoints_of(options->path))) {
      const auto line = line_of(step);
      context.out.write(options->json ? line.dump() + "\n" : text_of_line(line));
    }
    return ExitCode::done;
  };
}

Action prepare_prune(CLI::App& app) {
  auto options = options_of(app, "Run folder, or its checkpoints folder");
  app.add_option("--keep-last", options->keep_last, "How many of the newest good steps stay")
      ->type_name("N")
      ->required()
      ->check(in_range(1, 1 << 30).description(""));
  app.add_flag("--json", options->json, "One JSON object a removed folder");
  return [options](Context& context) {
    const auto checkpoints = checkpoints_of(options->path);
    const auto job = base::value_or_throw(runtime::identify(context.environment)).job;
    const auto lock = base::value_or_throw(runtime::RunLock::take(run_of(checkpoints), job));
    auto removed = checkpoint::prune(checkpoints, options->keep_last);
    const auto garbage = checkpoint::collect_garbage(checkpoints, idle_before_garbage);
    removed.insert(removed.end(), garbage.begin(), garbage.end());
    for (const auto& folder : removed) {
      context.out.write(options->json ? Json{{"removed", folder.string()}}.dump() + "\n"
                                      : format("removed {}\n", folder.string()));
    }
    return ExitCode::done;
  };
}

}  // namespace

Command checkpoint_command() {
  return {
      .name = "checkpoint",
      .summary = "Looks into, verifies, lists, removes, exports and imports checkpoints",
      .group = "Training",
      .subcommands = {
          {.name = "inspect",
           .summary = "Shows step, tensors and files of a checkpoint",
           .prepare = prepare_inspect},
          {.name = "verify",
           .summary = "Compares every byte with its checksum and names what is bad",
           .details = "Bad bytes are named by file, byte range and tensors. Exit code 6 when "
                      "anything is bad. A run resumes by itself from the newest good step.",
           .prepare = prepare_verify},
          {.name = "list",
           .summary = "Lists the steps of a run, newest first",
           .prepare = prepare_list},
          {.name = "prune",
           .summary = "Removes all but the newest good steps of a run",
           .details = "At least one good step always stays. Folders that saves left half-written "
                      "are removed too once nobody has touched them for an hour.",
           .prepare = prepare_prune},
          checkpoint_export_command(),
          checkpoint_import_command(),
      }};
}

}  // namespace trireme::apps
