// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint list
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/store/object_store.hpp"

#include "apps/cli/commands.hpp"
#include "apps/commands/checkpoint_paths.hpp"

#include <sys/stat.h>

#include <algorithm>
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
  app.add_option("PATH", options->path, run_and_folder)->required()->type_name("PATH");
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

}  // namespace

Command checkpoint_list_command() {
  return {.name = "list",
          .summary = "Lists the steps of a run, newest first",
          .details =
              "Size, files, tokens, validation loss (where the step was evaluated) and "
              "tags. Saves that are not committed come first.",
          .prepare = prepare_list};
}

}  // namespace trireme::apps
