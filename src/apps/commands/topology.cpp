// SPDX-License-Identifier: Apache-2.0
// trireme topology
#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/topology/describe.hpp"
#include "trireme/topology/discover.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"

#include <memory>

namespace trireme::apps {
namespace {

constexpr int most_local_ranks = 1 << 16;

struct TopologyOptions {
  std::string xml;
  bool plan = false;
  int ranks = 0;
  std::string devices = "auto";
  std::string svg;
  bool json = false;
};

/// Placement of ranks on the machine: as many as --ranks, else one for each GPU, else one.
base::ExitCode show_plan(const TopologyOptions& options, const topology::Machine& machine,
                         Context& context) {
  const bool on_gpus = options.devices != "cpu" && !machine.gpus.empty();
  if (options.devices == "gpu" && machine.gpus.empty()) {
    throw base::Error(
        base::ExitCode::topology,
        "--devices gpu: this machine has no GPU; leave it out, or take another --xml");
  }
  int ranks = options.ranks;
  if (ranks == 0) ranks = on_gpus ? static_cast<int>(machine.gpus.size()) : 1;
  const auto placement = base::value_or_throw(topology::place_ranks(
      machine, ranks, on_gpus ? topology::GpuUse::one_each : topology::GpuUse::none));
  write_drawing({.file = options.svg,
                 .room = "topology",
                 .title = "placement of ranks",
                 .picture = [&] { return topology::placement_svg(machine, placement); },
                 .json = options.json,
                 .text =
                     [&] {
                       if (!options.json) return topology::placement_text(machine, placement);
                       auto json = topology::to_json(machine);
                       json["placement"] = topology::to_json(machine, placement);
                       return base::json_text(json, 2) + "\n";
                     }},
                context);
  return base::ExitCode::done;
}

base::ExitCode show_topology(const TopologyOptions& options, Context& context) {
  const auto machine = base::value_or_throw(options.xml.empty() ? topology::discover()
                                                                : topology::from_xml(options.xml));
  if (options.plan) return show_plan(options, machine, context);
  topology::BindingPlan plan;
  if (options.ranks != 0) {
    plan = base::value_or_throw(topology::plan_binding(machine, options.ranks));
  }
  if (options.json) {
    auto json = topology::to_json(machine);
    if (options.ranks != 0) json["binding"] = topology::to_json(plan);
    context.out.write(base::json_text(json, 2) + "\n");
    return base::ExitCode::done;
  }
  context.out.write(topology::tree_text(machine));
  if (options.ranks != 0) {
    context.out.write("\n" + topology::plan_text(plan));
  }
  return base::ExitCode::done;
}

Action prepare_topology(CLI::App& app) {
  auto options = std::make_shared<TopologyOptions>();
  app.add_option("--xml", options->xml, "A machine recorded with 'lstopo FILE' instead of this one")
      ->type_name("FILE");
  add_ranks(app, options->ranks,
            "Ranks on the node: also says which CPUs they would be bound to, and why; with --plan "
            "the ranks that it places (without: one for each GPU, or one)",
            "--local-ranks", most_local_ranks);
  auto* plan = app.add_flag("--plan", options->plan,
                            "Which GPU, CPUs and NICs each rank on the node gets, and why");
  app.add_option("--devices", options->devices,
                 "With --plan: what ranks compute on; auto is GPUs where there are any")
      ->type_name("auto|cpu|gpu")
      ->check(one_of({"auto", "cpu", "gpu"}))
      ->needs(plan);
  // Its earlier form had no file.
  add_svg(app, options->svg, "With --plan: also draws it")
      ->expected(0, 1)
      ->default_str("-")
      ->needs(plan);
  app.add_flag("--json", options->json,
               "One JSON object: the machine, and the binding or the placement if asked");
  return [options](Context& context) { return show_topology(*options, context); };
}

}  // namespace

Command topology_command() {
  return {.name = "topology",
          .summary = "Shows the cores, memory, GPUs and NICs of a node",
          .group = "Explanations",
          .details =
              "Only what this process may use is counted as allowed: cgroups and CPU masks "
              "(taskset, srun) are respected.",
          .prepare = prepare_topology};
}

}  // namespace trireme::apps
