// SPDX-License-Identifier: Apache-2.0
// trireme runs
#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/report/listing.hpp"

#include "apps/cli/commands.hpp"
#include "apps/runs/output_forms.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct RunsOptions {
  std::string folder = ".";
  bool json = false;
};

Action prepare_runs(CLI::App& app) {
  auto options = std::make_shared<RunsOptions>();
  app.add_option("DIR", options->folder, "Folder in which and below which runs are looked for")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_flag("--json", options->json, "One JSON object a line");
  return [options](Context& context) {
    const auto listing = base::value_or_throw(report::list_runs(options->folder));
    for (const auto& note : listing.notes) base::log::warning("report", "{}", note);
    if (options->json) {
      for (const auto& run : listing.runs) context.out.write(json_line(report::to_json(run)));
    } else if (listing.runs.empty()) {
      base::log::info("report", "there is no run directory in '{}' or below", options->folder);
    } else {
      context.out.write(report::text_of(listing.runs, terminal_width(), now_ms()));
    }
    return base::ExitCode::done;
  };
}

}  // namespace

Command runs_command() {
  return {.name = "runs",
          .summary = "Lists run directories: state, step, loss, speed, age",
          .group = "Explanations",
          .details =
              "Runs that a process holds come first, then the newest. States: running, finished, "
              "stopped (in good order), failed, and unknown where no end was noted; trireme why "
              "tells more of one. tok/s is that of the last steps, age that of the last line of "
              "metrics.jsonl. Hidden folders and links are not followed.",
          .prepare = prepare_runs};
}

}  // namespace trireme::apps
