// SPDX-License-Identifier: Apache-2.0
// trireme topology
#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/topology/describe.hpp"
#include "trireme/topology/discover.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct TopologyOptions {
  std::string xml;
  int local_ranks = 0;
  bool plan = false;
  int ranks = 0;
  std::string devices = "auto";
  bool svg = false;
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
  if (options.json) {
    auto json = topology::to_json(machine);
    json["placement"] = topology::to_json(machine, placement);
    context.out.write(base::json_text(json, 2) + "\n");
  } else if (options.svg) {
    context.out.write(topology::placement_svg(machine, placement));
  } else {
    context.out.write(topology::placement_text(machine, placement));
  }
  return base::ExitCode::done;
}

base::ExitCode show_topology(const TopologyOptions& options, Context& context) {
  const auto machine = base::value_or_throw(options.xml.empty() ? topology::discover()
                                                                : topology::from_xml(options.xml));
  if (options.plan) return show_plan(options, machine, context);
  topology::BindingPlan plan;
  if (options.local_ranks != 0) {
    plan = base::value_or_throw(topology::plan_binding(machine, options.local_ranks));
  }
  if (options.json) {
    auto json = topology::to_json(machine);
    if (options.local_ranks != 0) json["binding"] = topology::to_json(plan);
    context.out.write(base::json_text(json, 2) + "\n");
    return base::ExitCode::done;
  }
  context.out.write(topology::tree_text(machine));
  if (options.local_ranks != 0) {
    context.out.write("\n" + topology::plan_text(plan));
  }
  return base::ExitCode::done;
}

Action prepare_topology(CLI::App& app) {
  auto options = std::make_shared<TopologyOptions>();
  app.add_option("--xml", options->xml, "A machine recorded with 'lstopo FILE' instead of this one")
      ->type_name("FILE");
  app.add_option("--local-ranks", options->local_ranks,
                 "Also says which CPUs this many ranks on the node would be bound to, and why")
      ->type_name("N")
      ->check(in_range(1, 1 << 16).description(""));
  auto* plan = app.add_flag("--plan", options->plan,
                            "Which GPU, CPUs and NICs each rank on the node gets, and why");
  app.add_option("--ranks", options->ranks,
                 "With --plan: ranks on the node; without, one for each GPU, or one")
      ->type_name("N")
      ->check(in_range(1, 1 << 16).description(""))
      ->needs(plan);
  app.add_option("--devices", options->devices,
                 "With --plan: what ranks compute on; auto is GPUs where there are any")
      ->type_name("auto|cpu|gpu")
      ->check(one_of({"auto", "cpu", "gpu"}))
      ->needs(plan);
  app.add_flag("--svg", options->svg, "With --plan: a picture instead of the table")->needs(plan);
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
