// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/describe.hpp"

#include "binding_properties.hpp"
#include "support/load_machine.hpp"

#include <sched.h>

#include <algorithm>
#include <map>

using namespace trireme;
using namespace trireme::tests;
using topology::CpuSet;
using topology::plan_binding;

namespace {

/// Ranks per NUMA node, by the node of each rank's first core.
std::map<int, int> ranks_per_node(const topology::BindingPlan& plan) {
  std::map<int, int> counts;
  for (const auto& slot : plan.slots) ++counts[slot.numa_nodes.front()];
  return counts;
}

}  // namespace

TEST_CASE("every plan keeps whole, allowed, disjoint cores, from one rank to twice the cores") {
  for (const auto& spec : all_machines()) {
    const auto machine = load(spec);
    const int cores = static_cast<int>(topology::allowed_cores(machine).size());
    for (int ranks = 1; ranks <= 2 * cores; ++ranks) {
      INFO(spec.name << " with " << ranks << " ranks");
      const auto plan = plan_binding(machine, ranks);
      REQUIRE(plan.ok());
      check_plan(machine, *plan, ranks);
    }
  }
}

TEST_CASE("ranks are spread evenly over NUMA nodes and neighbours are consecutive") {
  for (const auto& spec : {two_socket_server(), smt_server(), sub_numa_clusters(), rails()}) {
    const auto machine = load(spec);
    const int nodes = static_cast<int>(machine.numa_nodes.size());
    const int cores = static_cast<int>(machine.cores.size());
    for (int ranks = nodes; ranks <= 2 * cores; ranks += nodes) {
      INFO(spec.name << " with " << ranks << " ranks");
      const auto plan = plan_binding(machine, ranks).value();
      for (const auto& [node, count] : ranks_per_node(plan)) CHECK(count == ranks / nodes);
      CHECK(std::is_sorted(plan.slots.begin(), plan.slots.end(), [](const auto& a, const auto& b) {
        return a.numa_nodes.front() < b.numa_nodes.front();
      }));
      for (const auto& slot : plan.slots) CHECK(slot.numa_nodes.size() == 1);
    }
  }
}

TEST_CASE("a rank gets at least three quarters of an even share of the usable cores") {
  for (const auto& spec :
       {laptop(), two_socket_server(), sub_numa_clusters(), no_numa(), rails(), small_cgroup()}) {
    const auto machine = load(spec);
    const int cores = static_cast<int>(topology::allowed_cores(machine).size());
    for (int ranks = 1; ranks <= cores; ++ranks) {
      const auto plan = plan_binding(machine, ranks).value();
      const auto threads = static_cast<int>(plan.slots.front().compute_pus.size());
      INFO(spec.name << " with " << ranks << " ranks");
      CHECK(4 * threads >= 3 * (cores / ranks));
    }
  }
}

TEST_CASE("one rank has the whole machine, two ranks a package each") {
  const auto machine = load(sub_numa_clusters());
  const auto one = plan_binding(machine, 1).value();
  CHECK(one.slots[0].pus == machine.allowed);
  const auto two = plan_binding(machine, 2).value();
  CHECK(two.slots[0].numa_nodes == std::vector<int>{0, 1, 2, 3});
  CHECK(two.slots[1].numa_nodes == std::vector<int>{4, 5, 6, 7});
}

TEST_CASE("hardware threads of one core belong to one rank, and one of them computes") {
  const auto plan = plan_binding(load(smt_server()), 4).value();
  CHECK(plan.slots[1].pus.text() == "8-15,40-47");
  CHECK(plan.slots[1].compute_pus == std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("performance cores come first while they suffice for one each") {
  const auto machine = load(hybrid());
  REQUIRE(machine.core_kinds.size() == 2);
  const CpuSet performance{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (int ranks = 1; ranks <= 6; ++ranks) {
    const auto plan = plan_binding(machine, ranks).value();
    for (const auto& slot : plan.slots) CHECK(performance.contains(slot.pus));
    CHECK(plan.notes.front().find("8 cores of slower kind") != std::string::npos);
  }
  for (int ranks = 7; ranks <= 14; ++ranks) {
    const auto plan = plan_binding(machine, ranks).value();
    int fast_cores = 0;
    for (const auto& slot : plan.slots) {
      for (const int pu : slot.compute_pus) fast_cores += performance.contains(pu) ? 1 : 0;
    }
    INFO(ranks << " ranks");
    CHECK(fast_cores == 6);
  }
}

TEST_CASE("fewer ranks than NUMA nodes are spread over packages too") {
  const auto plan = plan_binding(load(sub_numa_clusters()), 6).value();
  std::vector<int> nodes;
  for (const auto& slot : plan.slots) nodes.push_back(slot.numa_nodes.front());
  CHECK(nodes == std::vector<int>{0, 1, 2, 4, 5, 6});
}

TEST_CASE("more ranks than cores share a NUMA node's cores and the plan warns") {
  const auto plan = plan_binding(load(laptop()), 8).value();
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].find("8 local ranks share 4 cores") == 0);
  for (const auto& slot : plan.slots) {
    CHECK(slot.shared);
    CHECK(slot.pus.text() == "0-7");
  }
  // Threads that must share are at least told apart: each core computes for two of the eight.
  std::map<int, int> uses;
  for (const auto& slot : plan.slots) ++uses[slot.compute_pus.front()];
  for (const auto& [pu, count] : uses) CHECK(count == 2);
}

TEST_CASE("cores that a cgroup forbids are never planned") {
  const auto machine = load(small_cgroup());
  CHECK(machine.allowed.text() == "2-3,30-32");
  const auto two = plan_binding(machine, 2).value();
  CHECK(two.slots[0].pus.text() == "2-3");
  CHECK(two.slots[1].pus.text() == "30-31");
  // Sharing follows the cores: two of five on the first node.
  const auto ten = plan_binding(machine, 10).value();
  CHECK(ranks_per_node(ten) == std::map<int, int>{{0, 4}, {1, 6}});
}

TEST_CASE("no rank and no core are refused with their own exit codes") {
  auto machine = load(laptop());
  CHECK(plan_binding(machine, 0).failure().code == base::ExitCode::usage);
  machine.allowed = {};
  CHECK(plan_binding(machine, 1).failure().code == base::ExitCode::topology);
}

TEST_CASE("masks that the launcher gave each rank are kept, equal ones are planned within") {
  const auto machine = load(smt_server());
  const std::vector<CpuSet> differing{CpuSet{0, 32}, CpuSet{5}, CpuSet{5, 6}};
  const auto kept = plan_binding(machine, differing).value();
  CHECK(kept.slots[0].pus == differing[0]);
  CHECK(kept.slots[0].compute_pus == std::vector<int>{0});
  CHECK_FALSE(kept.slots[0].shared);
  CHECK(kept.slots[1].shared);
  CHECK(kept.slots[2].pus == differing[2]);

  const std::vector<CpuSet> equal(2, CpuSet{4, 5, 6, 7, 36, 37, 38, 39});
  const auto planned = plan_binding(machine, equal).value();
  CHECK(planned.slots[0].pus.text() == "4-5,36-37");
  CHECK(planned.slots[1].pus.text() == "6-7,38-39");

  const std::vector<CpuSet> elsewhere{CpuSet{0}, CpuSet{999}};
  const auto refused = plan_binding(machine, elsewhere);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == base::ExitCode::topology);
  CHECK(refused.failure().text.find("local rank 1 may use CPUs 999") == 0);
}

TEST_CASE("applying a slot sets this process's CPU mask, and a slot of no CPU here is refused") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const auto machine = topology::discover().value();
  auto plan = plan_binding(machine, static_cast<int>(topology::allowed_cores(machine).size()));
  const auto& slot = plan.value().slots.back();
  const auto status = topology::apply(slot);
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  const auto seen = topology::discover().value().allowed;
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  REQUIRE(status.ok());
  CHECK(CPU_COUNT(&after) == slot.pus.size());
  for (const int pu : slot.pus.pus()) CHECK(CPU_ISSET(static_cast<unsigned>(pu), &after));
  CHECK(seen == slot.pus);  // what taskset or a launcher leaves is what discovery allows

  topology::BindingSlot absent;
  absent.pus = CpuSet{100000};
  const auto refused = topology::apply(absent);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == base::ExitCode::topology);
}
