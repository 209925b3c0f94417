// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint inspect|verify (the others: files of their own)
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/signature.hpp"

#include "apps/cli/commands.hpp"
#include "apps/commands/checkpoint_paths.hpp"

#include <filesystem>
#include <memory>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;
using checkpoint::StepFolder;
using checkpoint::VerifyLevel;

struct Options {
  std::string path;
  bool json = false;
  VerifyLevel level = VerifyLevel::full;
  std::string key_file;
};

std::shared_ptr<Options> options_of(CLI::App& app, const char* meaning) {
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, meaning)->required()->type_name("PATH");
  return options;
}

/// Step at the path, or all steps of a run, newest first.
std::vector<StepFolder> steps_of(const std::filesystem::path& path) {
  if (checkpoint::is_step(path)) return {{path, 0}};
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
    context.out.write(options->json ? base::json_text(checkpoint::inspect_json(manifest), 2) + "\n"
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
          {"not_covered", report.not_covered},
          {"damages", std::move(damages)}};
}

std::string text_of(const checkpoint::VerifyReport& report) {
  auto text =
      format("{}: {}\n", report.folder.string(),
             report.good() ? format("good, {} checked", base::bytes_text(report.checked_bytes))
                           : "damaged in " + base::counted(std::ssize(report.damages), "place"));
  for (const auto& damage : report.damages) text += format("  {}\n", damage.text);
  if (!report.not_covered.empty()) text += format("  {}\n", report.not_covered);
  return text;
}

Action prepare_verify(CLI::App& app) {
  auto options = options_of(app, "Step folder, or run folder (all its steps)");
  auto* quick = app.add_flag_callback(
      "--quick", [options] { options->level = VerifyLevel::quick; },
      "Manifest and sizes of files alone, not their bytes");
  app.add_flag_callback(
         "--deep", [options] { options->level = VerifyLevel::deep; },
         "Also every value: it is finite, and HDF5 reads what a load reads")
      ->excludes(quick);
  app.add_option("--key-file", options->key_file, "Manifests must be signed with this key")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "One JSON object a step");
  return [options](Context& context) {
    bool all_good = true;
    std::string key;
    if (!options->key_file.empty()) {
      key = base::value_or_throw(checkpoint::read_key_file(options->key_file));
    }
    for (const auto& step : steps_of(options->path)) {
      const auto report = checkpoint::verify(step.path, options->level, 0, key);
      // A training run meanwhile removes its oldest steps, whole.
      if (!report.good() && !checkpoint::is_there(step.path)) {
        base::log::info("checkpoint", "'{}' was removed meanwhile", step.path.string());
        continue;
      }
      all_good = all_good && report.good();
      context.out.write(options->json ? base::json_text(json_of(report)) + "\n" : text_of(report));
      context.out.flush();
    }
    return all_good ? ExitCode::done : ExitCode::checkpoint;
  };
}

}  // namespace

Command checkpoint_command() {
  return {
      .name = "checkpoint",
      .summary = "Looks into, verifies, compares, tags, removes, exports and imports checkpoints",
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
          checkpoint_list_command(),
          checkpoint_tag_command(),
          checkpoint_prune_command(),
          checkpoint_forget_nodes_command(),
          checkpoint_diff_command(),
          checkpoint_export_command(),
          checkpoint_import_command(),
      }};
}

}  // namespace trireme::apps
