// SPDX-License-Identifier: Apache-2.0
// trireme trace
#include "trireme/report/trace.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/shared_options.hpp"
#include "apps/runs/output_forms.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct TraceOptions {
  std::filesystem::path run;
  std::string steps;
  std::string svg;
  std::filesystem::path perfetto;
  bool json = false;
};

std::optional<config::StepRange> steps_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto steps = config::parse_step_range(text);
  if (!steps) {
    throw base::Error(base::ExitCode::usage,
                      base::format("--steps {} {}", text, steps.failure().text));
  }
  return *steps;
}

base::ExitCode show_trace(const TraceOptions& options, Context& context) {
  const auto trace = base::value_or_throw(report::read_trace(options.run, steps_of(options.steps)));
  write_drawing({.file = options.svg,
                 .room = "report",
                 .title = "ranks over time",
                 .picture = [&trace] { return report::trace_svg(trace); },
                 .json = options.json,
                 .text =
                     [&] {
                       return options.json ? json_line(report::trace_json(trace))
                                           : report::trace_text(trace);
                     }},
                context);
  if (!options.perfetto.empty()) {
    base::write_file_durably(options.perfetto, report::perfetto_text(trace));
    base::log::info("report", "{}: open it in https://ui.perfetto.dev", options.perfetto.string());
  }
  return base::ExitCode::done;
}

Action prepare_trace(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  app.add_option("RUN", options->run, "Run directory")->required()->type_name("PATH");
  app.add_option("--steps", options->steps, "The trace of these steps; the newest otherwise")
      ->type_name("FIRST..LAST");
  add_svg(app, options->svg, "Also draws ranks over time");
  app.add_option("--perfetto", options->perfetto,
                 "Also writes all ranks into one trace, with arrows from sends to receives")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "One JSON object, in seconds");
  return [options](Context& context) { return show_trace(*options, context); };
}

}  // namespace

Command trace_command() {
  return {.name = "trace",
          .summary = "Tells where the time of recorded steps goes, by rank and operation",
          .group = "Explanations",
          .details =
              "Reads what train.profile or trireme profile has recorded. Shares are of the time "
              "from the first step's begin to the last one's end; communication that computation "
              "hides is a share of communication. docs/tracing.md explains columns and files.\n"
              "Example: trireme trace runs/a --svg a.svg",
          .prepare = prepare_trace};
}

}  // namespace trireme::apps
