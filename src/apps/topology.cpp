// trireme topology
#include "trireme/base/error.hpp"
#include "trireme/topology/describe.hpp"
#include "trireme/topology/discover.hpp"

#include "apps/commands.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct TopologyOptions {
  std::string xml;
  int local_ranks = 0;
  bool json = false;
};

base::ExitCode show_topology(const TopologyOptions& options, Context& context) {
  const auto machine = base::value_or_throw(options.xml.empty() ? topology::discover()
                                                                : topology::from_xml(options.xml));
  topology::BindingPlan plan;
  if (options.local_ranks != 0) {
    plan = base::value_or_throw(topology::plan_binding(machine, options.local_ranks));
  }
  if (options.json) {
    auto json = topology::to_json(machine);
    if (options.local_ranks != 0) json["binding"] = topology::to_json(plan);
    context.out.write(json.dump(2) + "\n");
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
      ->check(CLI::Range(1, 1 << 16).description(""));
  app.add_flag("--json", options->json, "One JSON object: the machine, and the binding if asked");
  return [options](Context& context) { return show_topology(*options, context); };
}

}  // namespace

Command topology_command() {
  return {.name = "topology",
          .summary = "Shows the cores, memory, GPUs and network cards of a node",
          .group = "Explanations",
          .details =
              "Only what this process may use is counted as allowed: cgroups and CPU masks "
              "(taskset, srun) are respected.",
          .prepare = prepare_topology};
}

}  // namespace trireme::apps
