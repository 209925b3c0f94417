// SPDX-License-Identifier: Apache-2.0
// Devices of the plugin: their names and properties, and those of what they send with.
#include "nccl-net-plugin/devices.hpp"

#include "nccl-net-plugin/lanes.hpp"
#include "netplugin/plugin_driver.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace trireme::testing;
using trireme::nccl_net::find_devices;
using trireme::nccl_net::lanes_of;
using trireme::nccl_net::list_takes;
namespace net = trireme::nccl_net;

TEST_CASE("UCX's account of an endpoint gives its lanes, each once") {
  CHECK(
      lanes_of("#\n# UCP endpoint 0x55\n#\n#               peer: n2:4711\n"
               "#                 lane[0]:  2:rc_mlx5/mlx5_0:1.0 md[4]   -> md[4]/ib/sysdev[3] am\n"
               "#                 lane[1]: 11:rc_mlx5/mlx5_0:1.1 md[4]   -> md[4]/ib/sysdev[3]\n"
               "#                 lane[2]:  7:cuda_ipc/cuda.0 md[6]\n#\n"
               "#                tag_send: 0..<egr/short>..8185..<rndv>..(inf)\n") ==
      std::vector<std::string>{"rc_mlx5/mlx5_0:1", "cuda_ipc/cuda"});
  CHECK(lanes_of("").empty());
  CHECK(lanes_of("lane[\nlane[0]:\nlane[1]: 3\nlane[2]: 4:x md[0]\n").empty());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "lane[0]: 1:tcp/eth" + std::to_string(i) + ".0 md[0]\n";
  CHECK(lanes_of(many).size() == 16);
}

TEST_CASE("devices tell who they are, and ones that are not there are refused") {
  Case test;
  test.sender = [](Peer& peer) {
    expect(peer.plugin.device_count() >= 1, "there is a device");
    const auto found = peer.plugin.properties(0);
    expect(found.name != nullptr && *found.name != 0, "it has a name");
    expect((found.pointer_support & net::pointer_host) != 0, "it sends memory of the host");
    expect(found.megabits_per_second > 0 && found.max_receives == 8, "its figures make sense");
    Handle handle{};
    void* listener = nullptr;
    expect(peer.plugin.listen(77, handle.data(), &listener) == net::Result::invalid_usage,
           "device 77 is refused");
    expect(NetPlugin::log().find("no such device: 77") != std::string::npos, "in words");
    int whole = -1;
    expect(peer.plugin.make_virtual_device(&whole, {}) == net::Result::invalid_usage,
           "a device of nothing is refused");
  };
  test.receiver = [](Peer&) {};
  CHECK(run_case(test) == "");
}

TEST_CASE("lists of devices take names as NCCL's variables do") {
  CHECK(list_takes("", "eth0"));
  CHECK(list_takes("all", "eth0"));
  CHECK(list_takes("mlx5_0,mlx5_3", "mlx5_3"));
  CHECK(list_takes("mlx5", "mlx5_3"));
  CHECK(!list_takes("=mlx5", "mlx5_3"));
  CHECK(!list_takes("^docker,lo", "docker0"));
  CHECK(list_takes("^docker,lo", "eth0"));
  CHECK(!list_takes("mlx5_1", "mlx5_0"));
}

TEST_CASE("active ports are devices with the rate and the chip that the system tells") {
  const auto sys =
      std::filesystem::temp_directory_path() / ("trireme-sys-" + std::to_string(::getpid()));
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((sys / path).parent_path());
    std::ofstream(sys / path) << text << "\n";
  };
  for (const char* nic : {"mlx5_0", "mlx5_1", "mlx5_2"}) {
    const auto base = std::string("class/infiniband/") + nic;
    write(base + "/node_guid", "a088:c203:00ab:10cd");
    write(base + "/ports/1/state", std::string(nic) == "mlx5_1" ? "1: DOWN" : "4: ACTIVE");
    write(base + "/ports/1/rate", "400 Gb/sec (4X NDR)");
  }
  const auto all = find_devices({}, {"eth0"}, sys);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "mlx5_0:1");
  CHECK(all[1].name == "mlx5_2:1");
  CHECK(all[0].megabits_per_second == 400'000);
  CHECK(all[0].guid == 0xa088c20300ab10cdULL);
  CHECK(find_devices({"mlx5_2", "", "", ""}, {}, sys).front().name == "mlx5_2:1");
  // Nothing active is left: interfaces serve.
  CHECK(find_devices({"mlx5_1", "", "", ""}, {"eth0"}, sys).front().name == "eth0");
  const auto both = net::joined(all);
  CHECK(both.ucx_name == "mlx5_0:1,mlx5_2:1");
  CHECK(both.megabits_per_second == 800'000);
  std::filesystem::remove_all(sys);
}
