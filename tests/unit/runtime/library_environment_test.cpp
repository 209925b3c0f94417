// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/library_environment.hpp"

#include "trireme/runtime/launcher_environment.hpp"

#include "support/load_machine.hpp"

#include <unistd.h>

#include <cstdlib>

using namespace trireme;
using namespace trireme::tests;
using base::Environment;
using Catch::Matchers::Contains;
using topology::GpuUse;
using Values = std::vector<std::pair<std::string, std::string>>;
using Variables = std::map<std::string, std::string, std::less<>>;

namespace {

Values settings(const topology::Machine& machine, int ranks, int local_rank, GpuUse use,
                Variables variables = {}) {
  const auto placement = topology::place_ranks(machine, ranks, use);
  REQUIRE(placement.ok());
  Values values;
  for (const auto& one : runtime::network_settings(machine, *placement, local_rank,
                                                   Environment(std::move(variables)))) {
    CHECK(one.reason == placement->slots[static_cast<std::size_t>(local_rank)].nic_reason);
    values.emplace_back(one.variable, one.value);
  }
  return values;
}

runtime::LibraryEnvironment queues(Variables variables) {
  return runtime::queue_settings(Environment(std::move(variables)));
}
runtime::LibraryEnvironment queues_with(const std::string& value) {
  return queues({{"CUDA_DEVICE_MAX_CONNECTIONS", value}});
}

}  // namespace

TEST_CASE("UCX gets a rank's own NICs, NCCL those of the node, and nobody storage NICs") {
  const auto machine = load(paired_switches());
  const auto found = settings(machine, 8, 5, GpuUse::one_each);
  CHECK(found ==
        Values{{"UCX_NET_DEVICES", "mlx5_9:1"},
               {"NCCL_IB_HCA",
                "=mlx5_0:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_9:1,mlx5_10:1,mlx5_11:1"}});
}

TEST_CASE("what the user has set is left alone") {
  const auto machine = load(paired_switches());
  const auto found =
      settings(machine, 8, 0, GpuUse::one_each, {{"UCX_NET_DEVICES", "all"}, {"NCCL_IB_HCA", ""}});
  CHECK(found.empty());
}

TEST_CASE("without GPUs only UCX is told, and without a usable NIC nobody") {
  CHECK(settings(load(asymmetric()), 4, 0, GpuUse::none) ==
        Values{{"UCX_NET_DEVICES", "mlx5_0:1"}});
  // Ethernet alone, Slingshot without verbs, and a NIC of which no port is known to be up.
  CHECK(settings(load(laptop()), 2, 0, GpuUse::none).empty());
  CHECK(settings(load(dies_with_nics()), 8, 0, GpuUse::one_each).empty());
  CHECK(settings(load(rails()), 8, 0, GpuUse::one_each).empty());
}

TEST_CASE("a task's place on its node is read from its launcher") {
  const auto share = [](Variables variables) {
    return runtime::announced_share(Environment(std::move(variables)));
  };
  const auto srun = share({{"SLURM_NODEID", "3"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                           {"SLURM_STEP_NUM_TASKS", "7"}});
  REQUIRE(srun);
  CHECK(srun->local_ranks == 1);
  CHECK(srun->several_nodes);
  const auto alone = share({{"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  REQUIRE(alone);
  CHECK(alone->local_rank == 3);
  CHECK_FALSE(alone->several_nodes);
  CHECK_FALSE(share({}));
  CHECK_FALSE(share({{"SLURM_NODEID", "4"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                     {"SLURM_STEP_NUM_TASKS", "7"}}));
  CHECK_FALSE(share({{"SLURM_NODEID", "0"},
                     {"SLURM_LOCALID", "2"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2(xmany)"},
                     {"SLURM_STEP_NUM_TASKS", "7"}}));
}

TEST_CASE("nothing is set for CPU ranks of a job on one node") {
  const auto libraries =
      runtime::library_environment(Environment(Variables{{"OMPI_COMM_WORLD_SIZE", "4"},
                                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
                                   GpuUse::none);
  CHECK(libraries.settings.empty());
  CHECK(libraries.warnings.empty());
  CHECK(runtime::sentences(libraries).empty());
}

TEST_CASE("ranks on GPUs are told of their queues, on one node, too") {
  const auto libraries = runtime::library_environment(Environment(), GpuUse::one_each);
  REQUIRE(libraries.settings.size() == 1);
  CHECK(libraries.settings.front().variable == "CUDA_DEVICE_MAX_CONNECTIONS");
}

TEST_CASE("variables that have one reason are said in one sentence") {
  const auto texts = runtime::sentences(
      {.settings = {{"A", "1", "near"}, {"B", "2", "near"}, {"C", "3", "far"}}, .warnings = {}});
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] ==
        "A=1 and B=2 set for this rank (near); set the variable yourself to choose otherwise");
  CHECK(texts[1] == "C=3 set for this rank (far); set the variable yourself to choose otherwise");
}

TEST_CASE("a GPU has as many queues as CUDA allows, unless the user has chosen") {
  const auto chosen = queues({{"PATH", "/bin"}});
  REQUIRE(chosen.settings.size() == 1);
  CHECK(chosen.settings.front().value == "32");
  CHECK(chosen.warnings.empty());
  CHECK_THAT(runtime::sentences(chosen).at(0), Contains("CUDA_DEVICE_MAX_CONNECTIONS=32 set"));
  for (const char* enough : {"10", "16", "32"}) {
    const auto left = queues_with(enough);
    CHECK(left.settings.empty());
    CHECK(left.warnings.empty());
  }
}

TEST_CASE("fewer queues than a rank has streams are left alone with a warning") {
  // Megatron-LM's, CUDA's own, and one short of enough.
  for (const char* few : {"1", "8", "9"}) {
    const auto left = queues_with(few);
    CHECK(left.settings.empty());
    REQUIRE(left.warnings.size() == 1);
    CHECK_THAT(left.warnings[0], Contains(std::string("= ") + few + " (a rank has up to 10") &&
                                     Contains("unset it, or take 32"));
  }
  for (const char* wrong : {"", "0", "33", "-1", "many", "8 "}) {
    CAPTURE(wrong);
    const auto left = queues_with(wrong);
    CHECK(left.settings.empty());
    REQUIRE(left.warnings.size() == 1);
    CHECK_THAT(left.warnings[0], Contains("is no number from 1 to 32"));
  }
}

TEST_CASE("what is set is what this process' libraries read") {
  const auto value = [] {
    return Environment::capture(environ).get("CUDA_DEVICE_MAX_CONNECTIONS");
  };
  const auto before = value();
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  runtime::apply(queues_with("4"));
  CHECK_FALSE(value());
  runtime::apply(queues({}));
  CHECK(value() == "32");
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (before) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", before->c_str(), 1);
}
