// SPDX-License-Identifier: Apache-2.0
// trireme graph
#include "trireme/plan/graph.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"

#include <memory>

namespace trireme::apps {
namespace {

constexpr int most_ranks = 1 << 20;

struct GraphOptions {
  int world = 0;
  std::filesystem::path svg;
  std::filesystem::path dot;
  bool json = false;
};

base::ExitCode draw(const config::Config& config, const GraphOptions& options, Context& context) {
  const auto model = base::value_or_throw(train::model_from(config));
  const int world =
      options.world > 0 ? options.world : config::least_world(config.options().parallel);
  const auto graph = base::value_or_throw(plan::model_graph(config, model, world));
  context.out.write(options.json ? base::json_text(plan::graph_json(graph), 2) + "\n"
                                 : plan::graph_text(graph));
  for (const auto& [path, text] :
       {std::pair(options.svg, &plan::graph_svg), std::pair(options.dot, &plan::graph_dot)}) {
    if (path.empty()) continue;
    base::write_file_durably(path, text(graph));
    base::log::info("plan", "{}: the model and its cut", path.string());
  }
  return base::ExitCode::done;
}

Action prepare_graph(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<GraphOptions>();
  app.add_option("--world", options->world, "Ranks in all; of one replica if it is not given")
      ->type_name("N")
      ->check(in_range(1, most_ranks).description(""));
  app.add_option("--out", options->svg, "Also draws it as SVG")->type_name("FILE");
  app.add_option("--dot", options->dot, "Also writes it for Graphviz")->type_name("FILE");
  app.add_flag("--json", options->json, "One JSON object");
  return [arguments, options](Context& context) {
    return draw(base::value_or_throw(arguments->resolve(context.environment)), *options, context);
  };
}

}  // namespace

Command graph_command() {
  return {
      .name = "graph",
      .summary = "Draws the model and its parallel cut: layers, shapes, FLOPs, messages",
      .group = "Explanations",
      .details =
          "Parameters and FLOPs add up to those of trireme plan; no rank is started, and no "
          "data are read.\n"
          "Example: trireme graph configs/llama3-8b.conf --set parallel.pipeline=4 --out 8b.svg",
      .prepare = prepare_graph};
}

}  // namespace trireme::apps
