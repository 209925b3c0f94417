// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/rank_order.hpp"

#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using base::Environment;
using runtime::OrderRule;
using runtime::RankOrdering;
using Variables = std::map<std::string, std::string, std::less<>>;

namespace {

Environment on_switches(const std::string& address, const std::string& pattern) {
  return Environment(
      Variables{{"SLURM_TOPOLOGY_ADDR", address}, {"SLURM_TOPOLOGY_ADDR_PATTERN", pattern}});
}

/// Four nodes with one task each, on switches by turns.
std::vector<comm::LaunchedProcess> four_nodes(const runtime::JoinOptions& options) {
  std::vector<comm::LaunchedProcess> processes;
  for (int node = 0; node < 4; ++node) {
    const auto address = base::format("core.s{}.n{}", node % 2, node);
    RankOrdering ordering(options, on_switches(address, "switch.switch.node"));
    processes.push_back({base::format("n{}", node), ordering.numbering().word});
  }
  return processes;
}

std::vector<int> order_of(const runtime::JoinOptions& options, Environment environment,
                          const std::vector<comm::LaunchedProcess>& processes) {
  RankOrdering ordering(options, environment);
  return ordering.numbering().order(processes);
}

const std::vector<int> as_launched{0, 1, 2, 3};

}  // namespace

TEST_CASE("switches are read from Slurm's address and pattern, and from nothing that is unclear") {
  const auto path = [](const char* address, const char* pattern) {
    return runtime::switches_above(on_switches(address, pattern));
  };
  CHECK(path("core.rack2.n17", "switch.switch.node") == layout::NetworkPath{"core", "rack2"});
  CHECK(path("n17", "node").empty());
  CHECK(path("core.rack.2.n17", "switch.switch.node").empty());
  CHECK(path("core.n17", "node.switch").empty());
  CHECK(path("block1.n17", "block.node").empty());
  CHECK(runtime::switches_above(Environment{}).empty());
}

TEST_CASE("ranks follow the network, or the launcher where that is asked for") {
  runtime::JoinOptions options;
  options.arrangement.pipeline = 2;
  const auto environment = on_switches("core.s0.n0", "switch.switch.node");
  CHECK(order_of(options, environment, four_nodes(options)) == std::vector{0, 2, 1, 3});
  auto keeping = options;
  keeping.order = OrderRule::launcher;
  CHECK(order_of(keeping, environment, four_nodes(keeping)) == as_launched);
}

TEST_CASE("tasks that srun dealt out by hand keep their order, unless topology is asked for") {
  runtime::JoinOptions options;
  options.arrangement.pipeline = 2;
  auto variables = on_switches("core.s0.n0", "switch.switch.node").variables();
  variables["SLURM_DISTRIBUTION"] = "cyclic";
  auto processes = four_nodes(options);
  for (auto& process : processes) {
    process.word.replace(0, process.word.find(' '), "keep");
  }
  CHECK(order_of(options, Environment(variables), processes) == as_launched);
  options.order = OrderRule::topology;
  CHECK(order_of(options, Environment(variables), four_nodes(options)) == std::vector{0, 2, 1, 3});
}

TEST_CASE("processes that do not agree on the mesh keep their order until that is named") {
  runtime::JoinOptions options;
  options.arrangement.pipeline = 2;
  const auto environment = on_switches("core.s0.n0", "switch.switch.node");
  auto processes = four_nodes(options);
  runtime::JoinOptions other;
  other.arrangement.pipeline = 4;
  processes[3] = four_nodes(other)[3];
  CHECK(order_of(options, environment, processes) == as_launched);
  // A mesh that does not fit the world is refused later, by its own text.
  options.arrangement.pipeline = 3;
  CHECK(order_of(options, environment, four_nodes(options)) == as_launched);
}
