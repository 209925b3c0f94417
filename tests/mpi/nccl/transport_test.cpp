// SPDX-License-Identifier: Apache-2.0
// The transport is shown by the first operation of all ranks, and all ranks judge it together.
#include "trireme/comm/peer_error.hpp"
#include "trireme/runtime/device_groups.hpp"

#include "mpi/behaviour/group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

#include <cstdio>
#include <cstdlib>

using namespace trireme;
using namespace trireme::testing;
using runtime::RdmaRule;

namespace {

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

int own_rank() {
  return mpi().world_rank().value();
}

/// As if each rank were on a node of its own and had opened this; one falls back to sockets.
runtime::TransportReport report_of_nodes(int socket_rank) {
  runtime::TransportReport report;
  report.node = own_rank();
  report.rdma_nics = {"mlx5_0:1"};
  const std::string network = own_rank() == socket_rank ? "Socket" : "IB";
  report.transport.networks[network] = {2, 0};
  report.transport.devices["Socket"] = {"eth\xff:10.0.0.1<0>"};
  return report;
}

/// A cluster with the groups of layers, one of them of all ranks.
runtime::Cluster small_cluster() {
  const auto mesh = layout::Mesh::of(1, mpi().world_size(), 1);
  return {{},
          mesh,
          mpi().world_rank(),
          0,
          {},
          mpi().make_world({comm::Backend::mpi, 30}),
          {mesh, mpi().world_rank(),
           [](const comm::AxisGroup&, const char* name, std::vector<base::Rank> members) {
             return mpi().make_group(name, std::move(members), {comm::Backend::mpi, 30});
           }},
          {}};
}

/// Leaves in NCCL's log what the library would have said.
void write_log(const std::string& text) {
  std::FILE* const file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "w");
  REQUIRE(file != nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

}  // namespace

TEST_CASE("the first sum of all ranks opens ways, is right, and leaves nothing behind") {
  const auto nccl = make_fake_nccl(mpi(), everybody());
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  const auto world = mpi().make_world({comm::Backend::mpi, 30});
  {
    comm::NcclGroups groups(nccl->library(), mpi(), *world, device, {30, 256});
    groups.try_out();
    groups.try_out();
  }
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}

TEST_CASE("a first sum that never ends is given up at the deadline") {
  const auto meeting = mpi().make_world({comm::Backend::mpi, 30});
  const auto nccl = make_fake_nccl(mpi(), everybody());
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  const auto world = mpi().make_world({comm::Backend::mpi, 30});
  {
    comm::NcclGroups groups(nccl->library(), mpi(), *world, device, {0.3, 256});
    nccl->faults.never_ends = true;
    CHECK_THROWS_WITH(groups.try_out(), Catch::Contains("try_out number 2"));
  }
  CHECK(nccl->aborted == 1);
  meeting->barrier();
}

TEST_CASE("one rank that fell back to TCP stops all, with one text") {
  if (mpi().world_size() < 2) return;
  const auto world = mpi().make_world({comm::Backend::mpi, 30});
  const int last = mpi().world_size() - 1;
  try {
    runtime::prove_transport(*world, RdmaRule::automatic, report_of_nodes(last));
    FAIL("TCP is taken");
  } catch (const comm::AgreedError& error) {
    CHECK(error.code() == base::ExitCode::topology);
    CHECK(error.group_size() == mpi().world_size());
    CHECK_THAT(error.what(), Catch::Contains("which is TCP"));
  }
  const auto asked = runtime::prove_transport(*world, RdmaRule::optional, report_of_nodes(last));
  CHECK(asked.is_warning);
  const auto good = runtime::prove_transport(*world, RdmaRule::required, report_of_nodes(-1));
  CHECK_FALSE(good.is_warning);
  CHECK_THAT(good.sentence, Catch::Contains("by IB (NCCL's own verbs)"));
}

TEST_CASE("groups are made and told with what NCCL's log says") {
  const comm::NcclLog log{base::Environment()};
  write_log("n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
  const auto nccl = make_fake_nccl(mpi(), everybody());
  {
    SimulatedDevice device(Haste{Haste::Kind::lazy, 0}, "GPU " + std::to_string(own_rank()));
    auto cluster = small_cluster();
    const auto report =
        runtime::use_device_groups(device, cluster, mpi(),
                                   {.wish = runtime::DeviceGroups::nccl,
                                    .library = [&]() -> base::Result<comm::NcclLibrary> {
                                      auto library = nccl->library();
                                      return library;
                                    },
                                    .nccl = {.timeout_seconds = 30, .log = &log},
                                    .rdma = RdmaRule::required});
    CHECK_THAT(report.groups, Catch::Contains("NCCL 2.28.99"));
    CHECK_THAT(report.transport.sentence, Catch::Contains("from GPU to GPU (P2P)"));
    CHECK(std::string(cluster.groups.on(layout::Axis::data).backend()) == "nccl");
  }
  CHECK(nccl->alive() == 0);
  for (const auto* const variable : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) {
    ::unsetenv(variable);
  }
}
