// SPDX-License-Identifier: Apache-2.0
// trireme graph
#include "trireme/plan/graph.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/shared_options.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct GraphOptions {
  int ranks = 0;
  std::string svg;
  std::filesystem::path dot;
  bool json = false;
};

base::ExitCode draw(const config::Config& config, const GraphOptions& options, Context& context) {
  const auto model = base::value_or_throw(train::model_from(config));
  const int world = base::value_or_throw(ranks_in_all(options.ranks, config));
  const auto graph = base::value_or_throw(plan::model_graph(config, model, world));
  write_drawing({.file = options.svg,
                 .room = "plan",
                 .title = "the model and its cut",
                 .picture = [&graph] { return plan::graph_svg(graph); },
                 .json = options.json,
                 .text =
                     [&] {
                       return options.json ? base::json_text(plan::graph_json(graph), 2) + "\n"
                                           : plan::graph_text(graph);
                     }},
                context);
  if (!options.dot.empty()) {
    base::write_file_durably(options.dot, plan::graph_dot(graph));
    base::log::info("plan", "{}: the model and its cut", options.dot.string());
  }
  return base::ExitCode::done;
}

Action prepare_graph(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<GraphOptions>();
  add_ranks(app, options->ranks, "Ranks in all; of one replica if it is not given", "--world");
  add_svg(app, options->svg, "Also draws it", "--out");
  app.add_option("--dot", options->dot, "Also writes it for Graphviz")->type_name("FILE");
  app.add_flag("--json", options->json, "One JSON object");
  return [arguments, options](Context& context) {
    return draw(base::value_or_throw(arguments->resolve(context.environment)), *options, context);
  };
}

}  // namespace

Command graph_command() {
  return {.name = "graph",
          .summary = "Draws the model and its parallel cut: layers, shapes, FLOPs, messages",
          .group = "Explanations",
          .details =
              "Parameters and FLOPs add up to those of trireme plan; no rank is started, and no "
              "data are read.\n"
              "Example: trireme graph configs/llama3-8b.conf --pipeline-parallel 4 --svg 8b.svg",
          .prepare = prepare_graph};
}

}  // namespace trireme::apps
