#include "trireme/runtime/network_exports.hpp"

#include "support/load_machine.hpp"

using namespace trireme;
using namespace trireme::tests;
using base::Environment;
using runtime::NetworkExport;
using topology::GpuUse;
using Variables = std::map<std::string, std::string, std::less<>>;

namespace {

std::vector<NetworkExport> exports(const topology::Machine& machine, int ranks, int local_rank,
                                   GpuUse use, Variables variables = {}) {
  const auto placement = topology::place_ranks(machine, ranks, use);
  REQUIRE(placement.ok());
  return runtime::network_exports(machine, *placement, local_rank,
                                  Environment(std::move(variables)));
}

}  // namespace

TEST_CASE("UCX gets a rank's own cards, NCCL those of the node, and nobody storage cards") {
  const auto machine = load(paired_switches());
  const auto found = exports(machine, 8, 5, GpuUse::one_each);
  CHECK(found ==
        std::vector<NetworkExport>{
            {"UCX_NET_DEVICES", "mlx5_9:1"},
            {"NCCL_IB_HCA",
             "=mlx5_0:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_9:1,mlx5_10:1,mlx5_11:1"}});
}

TEST_CASE("what the user has set is left alone") {
  const auto machine = load(paired_switches());
  const auto found =
      exports(machine, 8, 0, GpuUse::one_each, {{"UCX_NET_DEVICES", "all"}, {"NCCL_IB_HCA", ""}});
  CHECK(found.empty());
}

TEST_CASE("without GPUs only UCX is told, and without a usable card nobody") {
  CHECK(exports(load(asymmetric()), 4, 0, GpuUse::none) ==
        std::vector<NetworkExport>{{"UCX_NET_DEVICES", "mlx5_0:1"}});
  // Ethernet alone, Slingshot without verbs, and a card of which no port is known to be up.
  CHECK(exports(load(laptop()), 2, 0, GpuUse::none).empty());
  CHECK(exports(load(dies_with_nics()), 8, 0, GpuUse::one_each).empty());
  CHECK(exports(load(rails()), 8, 0, GpuUse::one_each).empty());
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

TEST_CASE("nothing is set for a job on one node") {
  CHECK(runtime::export_network(Environment(Variables{{"OMPI_COMM_WORLD_SIZE", "4"},
                                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
                                GpuUse::none)
            .empty());
}
