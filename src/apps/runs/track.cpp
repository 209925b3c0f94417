// SPDX-License-Identifier: Apache-2.0
// trireme track sync
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/track/sync.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct TrackOptions {
  std::filesystem::path run;
  std::vector<std::string> targets;
  std::string trace_ranks = track::name(track::TraceRanks::sampled);
};

base::ExitCode sync(const TrackOptions& options, Context& context) {
  std::vector<track::Target> targets;
  for (const auto& text : options.targets) {
    targets.push_back(base::value_or_throw(track::parse_target(text)));
  }
  const auto trace_ranks = track::trace_ranks(options.trace_ranks);
  TRIREME_EXPECT(trace_ranks.has_value(), "the command line takes known words alone");
  for (const auto& target : targets) {
    auto sync = base::value_or_throw(track::Sync::open(
        options.run, target, {.environment = context.environment, .trace_ranks = *trace_ranks}));
    const auto counts = sync.send(track::Send::all);
    base::log::info("track", "{}: {} rows with {} numbers sent, {} spans of traces",
                    track::name(target.kind), counts.rows, counts.points, counts.spans);
    context.out.write(sync.place() + "\n");
  }
  return base::ExitCode::done;
}

std::vector<std::string> trace_ranks_choices() {
  const auto& choices = schema::find_key("track.trace_ranks")->choices;
  return {choices.begin(), choices.end()};
}

Action prepare_sync(CLI::App& app) {
  auto options = std::make_shared<TrackOptions>();
  app.add_option("RUN", options->run, "Run directory")->required()->type_name("PATH");
  app.add_option("--to", options->targets,
                 "Where to: tensorboard=DIR, wandb=DIR, mlflow=URL, otlp=URL or prometheus=FILE; "
                 "may be given several times")
      ->required()
      ->type_name("TARGET");
  app.add_option("--trace-ranks", options->trace_ranks,
                 "Whose spans of recorded steps are sent (OpenTelemetry)")
      ->type_name("RANKS")
      ->check(one_of(trace_ranks_choices()))
      ->capture_default_str();
  return [options](Context& context) { return sync(*options, context); };
}

}  // namespace

Command track_command() {
  Command sync_command{
      .name = "sync",
      .summary = "Sends what was not sent yet of a run's record to trackers",
      .details =
          "Reads metrics.jsonl, also while the run goes on, and may be called again and again: "
          "each "
          "step, evaluation and save is sent once, as RUN/track notes, also after a kill or an "
          "outage. Prints where it went. W&B: then wandb sync FOLDER. MLFLOW_TRACKING_TOKEN and "
          "OTEL_EXPORTER_OTLP_HEADERS are heeded.\n"
          "Example: trireme track sync runs/a --to tensorboard=logs --to mlflow=http://host:5000",
      .prepare = prepare_sync};
  return {.name = "track",
          .summary = "Sends runs to TensorBoard, W&B, MLflow, OpenTelemetry, Prometheus",
          .group = "Explanations",
          .subcommands = {std::move(sync_command)}};
}

}  // namespace trireme::apps
