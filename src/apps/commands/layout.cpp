// SPDX-License-Identifier: Apache-2.0
// trireme layout
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/layout/picture.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/layout/simulate.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::apps {
namespace {

constexpr int most_micro_batches = 1 << 12;
constexpr int timeline_columns = 132;

struct LayoutOptions {
  int ranks = 0;
  int micro_batches = 0;
  std::string svg;
  bool json = false;
};

struct Drawn {
  layout::Schedule schedule;
  layout::Simulation simulation;
};

Drawn draw(const config::ParallelOptions& parallel, int micro_batches) {
  auto schedule = base::value_or_throw(layout::make_schedule(
      parallel.schedule, parallel.pipeline, micro_batches, parallel.virtual_stages));
  // An action on one of v virtual stages is 1/v of a stage's work; a backward is two forwards.
  const double share = 1.0 / parallel.virtual_stages;
  auto simulation = base::value_or_throw(layout::simulate(schedule, {share, share, share, 0.0}));
  return {std::move(schedule), std::move(simulation)};
}

std::string text_of(const layout::Mesh& mesh, const std::optional<Drawn>& drawn, bool json) {
  if (json) {
    base::Json all{{"mesh", layout::mesh_json(mesh)}};
    if (drawn) all["schedule"] = layout::schedule_json(drawn->schedule, drawn->simulation);
    return base::json_text(all, 2) + "\n";
  }
  auto text = layout::mesh_text(mesh);
  if (drawn) {
    text += "\n" + layout::timeline_text(drawn->schedule, drawn->simulation, timeline_columns);
  }
  return text;
}

base::ExitCode show_layout(const config::Config& config, const LayoutOptions& options,
                           Context& context) {
  const auto& parallel = config.options().parallel;
  const auto mesh = base::value_or_throw(
      layout::arrange(config::arrangement(config.options()),
                      base::value_or_throw(ranks_in_all(options.ranks, config))));
  std::optional<Drawn> drawn;
  if (options.micro_batches > 0) drawn = draw(parallel, options.micro_batches);
  // --svg needs --micro-batches.
  write_drawing(
      {.file = options.svg,
       .room = "layout",
       .title = base::format("the timeline of {}", layout::name(parallel.schedule)),
       .picture = [&drawn] { return layout::timeline_svg(drawn->schedule, drawn->simulation); },
       .json = options.json,
       .text = [&] { return text_of(mesh, drawn, options.json); }},
      context);
  return base::ExitCode::done;
}

Action prepare_layout(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<LayoutOptions>();
  add_ranks(app, options->ranks, "Ranks in all; of one replica if it is not given", "--world");
  auto* batches =
      app.add_option("--micro-batches", options->micro_batches,
                     "Draws the schedule of a step with so many micro-batches on each replica");
  batches->type_name("N")->check(in_range(1, most_micro_batches).description(""));
  const std::vector<std::string> schedules(layout::schedule_names.begin(),
                                           layout::schedule_names.end());
  arguments
      ->add_shortcut(app, "--schedule", "parallel.schedule",
                     base::format("{} (key parallel.schedule)", base::join(schedules, ", ")))
      ->type_name("NAME")
      ->check(one_of(schedules))
      ->needs(batches);
  arguments
      ->add_shortcut(app, "--virtual-stages", "parallel.virtual_stages",
                     "Pieces of the model on each stage, interleaved: at least 2, zb-v: 2 (key "
                     "parallel.virtual_stages)")
      ->type_name("N")
      ->check(in_range(1, most_micro_batches).description(""))
      ->needs(batches);
  add_svg(app, options->svg, "Also draws the timeline")->needs(batches);
  app.add_flag("--json", options->json, "One JSON object: mesh, groups, and the schedule if asked");
  return [arguments, options](Context& context) {
    return show_layout(base::value_or_throw(arguments->resolve(context.environment)), *options,
                       context);
  };
}

}  // namespace

Command layout_command() {
  return {.name = "layout",
          .summary = "Draws which ranks form which groups, and a pipeline schedule's timeline",
          .group = "Explanations",
          .details =
              "Example: trireme layout --ranks 8 --tensor-parallel 2 --pipeline-parallel 2 "
              "--micro-batches 8. Degrees and schedule of a configuration are those of its "
              "[parallel]; no model is needed. In the timeline a backward takes as long as two "
              "forwards, and messages "
              "take no time; docs/parallelism.md explains the pictures.",
          .prepare = prepare_layout};
}

}  // namespace trireme::apps
