// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/transport.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using runtime::judge_transport;
using runtime::RdmaRule;
using runtime::TransportReport;

namespace {

/// Two nodes of two GPUs each; what ranks at the ends have opened between the nodes.
std::vector<TransportReport> two_nodes(const comm::NcclTransport& between) {
  std::vector<TransportReport> reports(4);
  for (int rank = 0; rank < 4; ++rank) {
    auto& report = reports[static_cast<std::size_t>(rank)];
    report.node = rank / 2;
    report.rdma_nics = {"mlx5_0:1", "mlx5_1:1"};
    if (rank == 1 || rank == 2) report.transport = between;
    report.transport.gpu_channels = 4;
  }
  return reports;
}

std::vector<TransportReport> without_gpus(std::vector<TransportReport> reports) {
  for (auto& report : reports) report.rdma_nics.clear();
  return reports;
}

comm::NcclTransport verbs() {
  comm::NcclTransport transport;
  transport.networks["IB"] = {8, 8};
  transport.devices["IB"] = {"mlx5_0:1/IB", "mlx5_1:1/IB"};
  return transport;
}

comm::NcclTransport sockets() {
  comm::NcclTransport transport;
  transport.networks["Socket"] = {4, 0};
  transport.devices["Socket"] = {"eth0:10.0.0.1<0>"};
  // Found, and not used.
  transport.devices["IB"] = {"mlx5_0:1/IB"};
  return transport;
}

comm::NcclTransport own(const std::vector<std::string>& ways) {
  comm::NcclTransport transport;
  transport.networks["Trireme"] = {4, 0};
  transport.plugins = {"libnccl-net-trireme.so"};
  transport.ways = ways;
  return transport;
}

std::string accepted(RdmaRule rule, const std::vector<TransportReport>& reports,
                     bool is_warning = false) {
  const auto verdict = judge_transport(rule, reports);
  REQUIRE(verdict.ok());
  CHECK(verdict->is_warning == is_warning);
  CHECK(verdict->sentence.find('\n') == std::string::npos);
  return verdict->sentence;
}

std::string refused(RdmaRule rule, const std::vector<TransportReport>& reports) {
  const auto verdict = judge_transport(rule, reports);
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.failure().code == base::ExitCode::topology);
  return verdict.failure().text;
}

constexpr auto all_rules = {RdmaRule::automatic, RdmaRule::required, RdmaRule::optional};

}  // namespace

TEST_CASE("RDMA between nodes is told with plugin, devices and GPUDirect in one line") {
  for (const auto rule : all_rules) {
    CHECK(accepted(rule, two_nodes(verbs())) ==
          "NCCL moves data between nodes by IB (NCCL's own verbs) over mlx5_0:1/IB, mlx5_1:1/IB, "
          "with GPUDirect RDMA; inside nodes from GPU to GPU (P2P)");
  }
  auto partly = verbs();
  partly.networks["IB"] = {8, 6};
  CHECK_THAT(accepted(RdmaRule::required, two_nodes(partly)),
             Catch::Contains("with GPUDirect RDMA on 12 of 16 channels"));
  auto none = verbs();
  none.networks["IB"] = {8, 0};
  CHECK_THAT(accepted(RdmaRule::required, two_nodes(none)),
             Catch::Contains("without GPUDirect RDMA, through the host's memory"));
}

TEST_CASE("the site's plugin and ours are named with what carries their messages") {
  auto sites = verbs();
  sites.networks.clear();
  sites.networks["UCX"] = {4, 4};
  sites.plugins = {"/opt/sharp/lib/libnccl-net.so"};
  CHECK_THAT(accepted(RdmaRule::required, two_nodes(sites)),
             Catch::Contains("by UCX (plugin /opt/sharp/lib/libnccl-net.so) over mlx5_0:1/IB"));
  CHECK_THAT(accepted(RdmaRule::required, two_nodes(own({"rc_mlx5/mlx5_0:1", "cma/memory"}))),
             Catch::Contains("by Trireme (plugin libnccl-net-trireme.so) over rc_mlx5/mlx5_0:1"));
}

TEST_CASE("TCP is refused where a node has RDMA NICs, unless it is asked for") {
  const std::vector<comm::NcclTransport> tcp{sockets(), own({"tcp/eth0", "cma/memory"})};
  for (const auto& between : tcp) {
    const auto reports = two_nodes(between);
    for (const auto rule : {RdmaRule::automatic, RdmaRule::required}) {
      const auto text = refused(rule, reports);
      CHECK_THAT(text, Catch::Contains("which is TCP"));
      CHECK_THAT(text, Catch::Contains("(mlx5_0:1, mlx5_1:1)"));
      CHECK_THAT(text, Catch::Contains("comm.require_rdma = false"));
    }
    accepted(RdmaRule::optional, reports, true);
  }
  CHECK_THAT(accepted(RdmaRule::optional, two_nodes(sockets()), true),
             Catch::Contains("by TCP sockets (Socket, NCCL's own) over eth0,"));
  // One node with GPUs is enough, and one rank that fell back.
  auto mixed = without_gpus(two_nodes(verbs()));
  mixed[3].rdma_nics = {"mlx5_4:1"};
  mixed[2].transport = sockets();
  CHECK_THAT(refused(RdmaRule::automatic, mixed), Catch::Contains("mlx5_4:1"));
}

TEST_CASE("TCP goes on without a word of warning where there is nothing better") {
  const auto reports = without_gpus(two_nodes(sockets()));
  accepted(RdmaRule::automatic, reports);
  accepted(RdmaRule::optional, reports);
  CHECK_THAT(refused(RdmaRule::required, reports),
             Catch::Contains("no node has an RDMA NIC whose port is up"));
}

TEST_CASE("what is not known is said, and refused where RDMA must be shown") {
  auto silent = two_nodes(verbs());
  silent[3].unknown = "NCCL's log is yours; unset NCCL_DEBUG";
  auto foreign = verbs();
  foreign.networks.clear();
  foreign.networks["Somebody's"] = {4, 0};
  const std::vector<std::vector<TransportReport>> all{silent, two_nodes({}), two_nodes(foreign),
                                                      two_nodes(own({})),
                                                      two_nodes(own({"an unknown way"}))};
  for (const auto& reports : all) {
    CHECK_THAT(accepted(RdmaRule::automatic, reports, true), Catch::Contains("is not known"));
    accepted(RdmaRule::optional, reports, true);
    CHECK_THAT(refused(RdmaRule::required, reports), Catch::Contains("is not known"));
  }
  CHECK_THAT(refused(RdmaRule::required, silent), Catch::Contains("rank 3: NCCL's log is yours"));
  // A rank that is silent does not hide TCP on another.
  auto both = two_nodes(sockets());
  both[0].unknown = "no log";
  CHECK_THAT(refused(RdmaRule::automatic, both), Catch::Contains("which is TCP"));
  // GPUDirect is RDMA, whoever does it.
  foreign.networks["Somebody's"] = {4, 4};
  accepted(RdmaRule::required, two_nodes(foreign));
}

TEST_CASE("one node needs no network, and nothing is refused there") {
  auto reports = two_nodes({});
  for (auto& report : reports) report.node = 0;
  reports[0].transport.host_channels = 2;
  for (const auto rule : all_rules) {
    CHECK(accepted(rule, reports) ==
          "NCCL moves data inside the node from GPU to GPU (P2P) and through the host's memory "
          "(SHM), and needs no network");
  }
  reports[1].unknown = "no log";
  CHECK_THAT(accepted(RdmaRule::required, reports), Catch::Contains("not known: no log"));
  CHECK(accepted(RdmaRule::required, std::vector<TransportReport>(1)) ==
        "NCCL has nothing to move: one rank alone");
}

TEST_CASE("NVLink between nodes is no network, and no TCP") {
  comm::NcclTransport fabric;
  fabric.fabric_channels = 8;
  CHECK_THAT(accepted(RdmaRule::required, two_nodes(fabric)),
             Catch::Contains("by NVLink between nodes (P2P/MNNVL)"));
}

TEST_CASE("groups that are not NCCL's are refused where RDMA must be shown between nodes") {
  CHECK(runtime::check_other_groups(RdmaRule::automatic, 2, "MPI's").ok());
  CHECK(runtime::check_other_groups(RdmaRule::required, 1, "MPI's").ok());
  const auto status = runtime::check_other_groups(RdmaRule::required, 2, "MPI's");
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::topology);
}
