// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/nccl_log.hpp"

#include "trireme/comm/nccl.hpp"

#include "comm/nccl/abi.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace trireme;
using base::Environment;
using comm::NcclLog;
using comm::read_nccl_log;
using Names = std::vector<std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

namespace {

constexpr std::array log_variables{"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};

/// Takes back what a log sets in this process.
struct Tidy {
  Tidy() = default;
  Tidy(const Tidy&) = delete;
  Tidy& operator=(const Tidy&) = delete;
  ~Tidy() {
    for (const auto* const variable : log_variables) ::unsetenv(variable);
  }
};

/// As NCCL puts its lines.
std::string info(const std::string& message) {
  return "n1:4711:4742 [0] NCCL INFO " + message + "\n";
}

/// As NCCL opens its file.
void write_as_nccl(const std::string& text) {
  const char* const path = std::getenv("NCCL_DEBUG_FILE");
  REQUIRE(path != nullptr);
  std::FILE* const file = std::fopen(path, "w");
  REQUIRE(file != nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

}  // namespace

TEST_CASE("NCCL's verbs with GPUDirect are read from the lines of every version") {
  const auto found = read_nccl_log(
      info("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.1.0.1<0>") +
      info("Using network IB") +
      // 2.18 to 2.24, the GPU of another rank, 2.25 and later.
      info("Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA") +
      info("Channel 01/0 : 1[1] -> 2[0] [send] via NET/IB/1(3)/GDRDMA/Shared") +
      info("Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA(PCI)") +
      info("Channel 01/0 : 3[1] -> 0[0] [receive] via NET/IB/1"));
  REQUIRE(found.networks.size() == 1);
  CHECK(found.networks.at("IB").channels == 4);
  CHECK(found.networks.at("IB").gpu_direct_channels == 3);
  CHECK(found.devices.at("IB") == Names{"mlx5_0:1/IB", "mlx5_1:1/RoCE"});
  CHECK(found.plugins.empty());
}

TEST_CASE("sockets are known from verbs") {
  const auto found = read_nccl_log(
      info("NET/IB : No device found.") +
      info("NET/Socket : Using [0]eth0:10.0.0.1<0> [1]ib0:fe80::1%ib0<0>") +
      info("NET/Socket: Using 2 threads and 8 sockets per thread") + info("Using network Socket") +
      info("Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"));
  CHECK(found.networks.at("Socket").channels == 1);
  CHECK(found.networks.at("Socket").gpu_direct_channels == 0);
  CHECK(found.devices.at("Socket") == Names{"eth0:10.0.0.1<0>", "ib0:fe80::1%ib0<0>"});
  CHECK(found.devices.count("IB") == 0);
}

TEST_CASE("plugins are known by their library and by the network's name") {
  const auto sites =
      read_nccl_log(info("Plugin Path : /opt/sharp/lib/libnccl-net.so") + info("P2P plugin UCX") +
                    info("NET/IB : Using [0]mlx5_0:1/IB/SHARP ; OOB ib0:10.1.0.1<0>") +
                    info("Channel 00/0 : 0[0] -> 1[0] [send] via NET/UCX/0/GDRDMA") +
                    info("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA"));
  CHECK(sites.plugins == Names{"/opt/sharp/lib/libnccl-net.so"});
  CHECK(sites.networks.at("UCX").gpu_direct_channels == 1);
  CHECK(sites.networks.at("SHARP").channels == 1);
  CHECK(sites.devices.at("IB") == Names{"mlx5_0:1/IB/SHARP"});
  for (const auto* const loaded :
       {"NET/Plugin: Plugin name set by env to libnccl-net-trireme.so",
        "Successfully loaded external plugin libnccl-net-trireme.so",
        "Successfully loaded external network plugin libnccl-net-trireme.so"}) {
    CHECK(read_nccl_log(info(loaded)).plugins == Names{"libnccl-net-trireme.so"});
  }
  const auto other =
      read_nccl_log(info("Channel 00 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/3/GDRDMA"));
  CHECK(other.networks.at("AWS Libfabric").gpu_direct_channels == 1);
}

TEST_CASE("our own plugin says what UCX carries messages with") {
  const auto found =
      read_nccl_log(info("NET/Trireme : to 10.0.0.2:4711 over rc_mlx5/mlx5_0:1, cma/memory") +
                    info("NET/Trireme : to 10.0.0.3:4711 over rc_mlx5/mlx5_0:1") +
                    info("NET/Trireme : to 10.0.0.4:4711 over an unknown way"));
  CHECK(found.ways == Names{"rc_mlx5/mlx5_0:1", "cma/memory", "an unknown way"});
}

TEST_CASE("inside a node there are GPUs, their fabric and the host's memory") {
  const auto found = read_nccl_log(info("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read") +
                                   info("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC") +
                                   info("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer") +
                                   info("Channel 00/0 : 0[0] -> 5[1] via P2P/MNNVL") +
                                   // The last of 2.30.
                                   info("Channel 00 : 2[2] -> 3[3] via SHM/direct/direct") +
                                   info("Channel 00 : 3[3] -> 2[2] via SHM/direct"));
  CHECK(found.gpu_channels == 3);
  CHECK(found.fabric_channels == 1);
  CHECK(found.host_channels == 2);
  CHECK(found.networks.empty());
}

TEST_CASE("lines that are none of NCCL's, are cut off or never end are passed over") {
  const auto found = read_nccl_log("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n" +
                                   info("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB") +
                                   info("Channel 00/0 : 0[0] -> 1[0] [send] via NET//0") +
                                   info("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/x") +
                                   info("Channel 00/0 : 0[0] -> 1[0] [send] via ") +
                                   info("NET/IB : Using [ []] [x]eth0 [1]={[0] mlx5_0:1/IB") +
                                   info("Channel 0 via NET/" + std::string(8000, 'x') + "/0") +
                                   std::string(3, '\0') + " NCCL INFO \n");
  CHECK(found.networks.empty());
  CHECK(found.devices.at("IB").empty());
  std::string many;
  for (int i = 0; i < 2000; ++i) {
    many += info("Channel 0 : 0[0] -> 1[0] [send] via NET/N" + std::to_string(i) + "/0");
  }
  CHECK(read_nccl_log(many).networks.size() == 64);
  CHECK(read_nccl_log("").networks.empty());
}

TEST_CASE("the last warnings of NCCL are kept in its words") {
  std::string text = info("Using network IB");
  for (int i = 0; i < 20; ++i) {
    text += "\n[2026-11-21 10:00:00] n1:4711:4742 [0] transport/net_ib.cc:99 NCCL WARN trouble " +
            std::to_string(i) + "\n";
  }
  const auto warnings = comm::warnings_of_nccl_log(text);
  REQUIRE(warnings.size() == 8);
  CHECK(warnings.front() == "trouble 12");
  CHECK(warnings.back() == "trouble 19");
  CHECK(comm::warnings_of_nccl_log(info("all is well")).empty());
}

TEST_CASE("NCCL's log goes into memory unless the user has asked for another place") {
  for (const auto& environment :
       {Variables{}, Variables{{"NCCL_DEBUG", "warn"}}, Variables{{"NCCL_DEBUG", "VERSION"}}}) {
    const Tidy tidy;
    const NcclLog log{Environment(environment)};
    CHECK(std::string(std::getenv("NCCL_DEBUG")) == "INFO");
    CHECK(std::string(std::getenv("NCCL_DEBUG_SUBSYS")) == "INIT,NET");
    REQUIRE(log.text().ok());
    CHECK(log.text()->empty());
    write_as_nccl(info("Using network IB"));
    CHECK(*log.text() == info("Using network IB"));
  }
}

TEST_CASE("a log in memory stops growing, and what is read of it has an end") {
  const Tidy tidy;
  const NcclLog log{Environment()};
  write_as_nccl(std::string(NcclLog::most_bytes + 5, 'x'));
  CHECK(log.text()->size() == NcclLog::most_bytes);
  std::FILE* const file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "a");
  REQUIRE(file != nullptr);
  std::setvbuf(file, nullptr, _IONBF, 0);
  CHECK(std::fwrite("more", 1, 4, file) == 0);
  std::fclose(file);
}

TEST_CASE("a user's own log is read where it has the lines, and else it is said what to set") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "nccl.%p.%h.100%%.%x";
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string host(name.data());
  const auto real = folder.path() / ("nccl." + std::to_string(::getpid()) + "." +
                                     host.substr(0, host.find('.')) + ".100%.%x");
  const auto log = [&](Variables variables) { return NcclLog{Environment(std::move(variables))}; };
  const Variables good{{"NCCL_DEBUG", "info"}, {"NCCL_DEBUG_FILE", path.string()}};
  CHECK_FALSE(log(good).text().ok());
  std::ofstream(real) << info("Using network IB");
  REQUIRE(log(good).text().ok());
  CHECK(*log(good).text() == info("Using network IB"));
  for (const char* const parts : {"INIT,NET", "net,init", "ALL", "^COLL"}) {
    auto asked = good;
    asked["NCCL_DEBUG_SUBSYS"] = parts;
    CHECK(log(asked).text().ok());
  }
  for (const char* const parts : {"COLL", "^INIT", "", "INITIAL"}) {
    auto asked = good;
    asked["NCCL_DEBUG_SUBSYS"] = parts;
    CHECK_FALSE(log(asked).text().ok());
  }
  for (const auto& asked :
       {Variables{{"NCCL_DEBUG", "INFO"}}, Variables{{"NCCL_DEBUG_FILE", path.string()}},
        Variables{{"NCCL_DEBUG_SUBSYS", "COLL"}}}) {
    const auto text = log(asked).text();
    REQUIRE_FALSE(text.ok());
    CHECK_THAT(text.failure().text, Catch::Contains("unset NCCL_DEBUG"));
    CHECK(std::getenv("NCCL_DEBUG") == nullptr);
  }
}

TEST_CASE("the library itself writes where its log is read") {
  const Tidy tidy;
  const NcclLog log{Environment()};
  const auto library = comm::load_nccl();
  if (!library.ok()) {
    WARN("TRIREME_SKIP: " << library.failure().text);
    return;
  }
  // Without a GPU it starts no further than this, which is enough for a line.
  comm::nccl::UniqueId id;
  library->api->get_unique_id(&id);
  REQUIRE(log.text().ok());
  CHECK_THAT(*log.text(), Catch::Contains(" NCCL INFO "));
}
