// SPDX-License-Identifier: Apache-2.0
// trireme layout
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/layout/picture.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/layout/simulate.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace trireme::apps {
namespace {

using layout::Axis;

constexpr int most_ranks = 1 << 20;
constexpr int most_micro_batches = 1 << 12;
constexpr int timeline_columns = 132;

struct LayoutOptions {
  int world = 0;
  int tensor = 1;
  int pipeline = 1;
  int data = 0;
  int micro_batches = 0;
  std::string schedule = "1f1b";
  int virtual_stages = 1;
  std::string svg;
  bool json = false;
};

base::Result<layout::Mesh> mesh_of(const LayoutOptions& options) {
  layout::ParallelArrangement degrees{.tensor = options.tensor, .pipeline = options.pipeline};
  if (options.data > 0) degrees.data = options.data;
  if (options.world > 0) return layout::arrange(degrees, options.world);
  const auto world =
      std::int64_t{options.tensor} * options.pipeline * std::int64_t{std::max(options.data, 1)};
  if (world > most_ranks) {
    return base::usage_failure(base::format(
        "--tp {} --pp {} --dp {} are {} ranks, more than {}; choose smaller degrees",
        options.tensor, options.pipeline, std::max(options.data, 1), world, most_ranks));
  }
  return layout::arrange(degrees, static_cast<int>(world));
}

struct Drawn {
  layout::Schedule schedule;
  layout::Simulation simulation;
};

Drawn draw(const LayoutOptions& options) {
  const auto kind = base::value_or_throw(layout::schedule_kind(options.schedule));
  auto schedule = base::value_or_throw(
      layout::make_schedule(kind, options.pipeline, options.micro_batches, options.virtual_stages));
  // An action on one of v virtual stages is 1/v of a stage's work; a backward is two forwards.
  const double share = 1.0 / options.virtual_stages;
  auto simulation = base::value_or_throw(layout::simulate(schedule, {share, share, share, 0.0}));
  return {std::move(schedule), std::move(simulation)};
}

base::ExitCode show_layout(const LayoutOptions& options, Context& context) {
  const auto mesh = base::value_or_throw(mesh_of(options));
  std::optional<Drawn> drawn;
  if (options.micro_batches > 0) drawn = draw(options);
  // --svg needs --micro-batches.
  if (drawn && !options.svg.empty()) {
    base::write_file_durably(options.svg, layout::timeline_svg(drawn->schedule, drawn->simulation));
    base::log::info("layout", "{}: the timeline of {}", options.svg, options.schedule);
  }
  if (options.json) {
    base::Json json{{"mesh", layout::mesh_json(mesh)}};
    if (drawn) json["schedule"] = layout::schedule_json(drawn->schedule, drawn->simulation);
    context.out.write(base::json_text(json, 2) + "\n");
    return base::ExitCode::done;
  }
  context.out.write(layout::mesh_text(mesh));
  if (drawn) {
    context.out.write("\n" +
                      layout::timeline_text(drawn->schedule, drawn->simulation, timeline_columns));
  }
  return base::ExitCode::done;
}

CLI::Option* add_degree(CLI::App& app, const std::string& name, int& value,
                        const std::string& meaning) {
  return app.add_option(name, value, meaning)
      ->type_name("N")
      ->check(in_range(1, most_ranks).description(""));
}

Action prepare_layout(CLI::App& app) {
  auto options = std::make_shared<LayoutOptions>();
  add_degree(app, "--world", options->world, "Ranks in all; of one replica if it is not given");
  add_degree(app, "--tp,--tensor-parallel", options->tensor, "Tensor-parallel degree")
      ->capture_default_str();
  add_degree(app, "--pp,--pipeline-parallel", options->pipeline, "Pipeline-parallel degree")
      ->capture_default_str();
  add_degree(app, "--dp,--data-parallel", options->data, "Data-parallel degree")
      ->default_str("what is left");
  auto* batches =
      app.add_option("--micro-batches", options->micro_batches,
                     "Draws the schedule of a step with so many micro-batches on each replica");
  batches->type_name("N")->check(in_range(1, most_micro_batches).description(""));
  app.add_option("--schedule", options->schedule, "gpipe, 1f1b or interleaved")
      ->type_name("NAME")
      ->check(one_of({"gpipe", "1f1b", "interleaved"}))
      ->capture_default_str()
      ->needs(batches);
  app.add_option("--virtual-stages", options->virtual_stages,
                 "Pieces of the model on each stage (interleaved: at least 2)")
      ->type_name("N")
      ->check(in_range(1, most_micro_batches).description(""))
      ->capture_default_str()
      ->needs(batches);
  app.add_option("--svg", options->svg, "Also writes the timeline as a picture")
      ->type_name("FILE")
      ->needs(batches);
  app.add_flag("--json", options->json, "One JSON object: mesh, groups, and the schedule if asked");
  return [options](Context& context) { return show_layout(*options, context); };
}

}  // namespace

Command layout_command() {
  return {.name = "layout",
          .summary = "Draws which ranks form which groups, and a pipeline schedule's timeline",
          .group = "Explanations",
          .details =
              "Example: trireme layout --world 8 --tp 2 --pp 2 --micro-batches 8 --schedule "
              "1f1b. In the timeline a backward takes as long as two forwards, and messages "
              "take no time; docs/parallelism.md explains the pictures.",
          .prepare = prepare_layout};
}

}  // namespace trireme::apps
