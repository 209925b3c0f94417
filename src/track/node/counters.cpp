// SPDX-License-Identifier: Apache-2.0
#include "counters.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

/// Numbers that follow the names in "/proc/net/dev": received bytes first, sent ones ninth.
std::vector<Traffic> ethernet_traffic() {
  std::vector<Traffic> all;
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::array<double, 9> values{};
    for (auto& value : values) numbers >> value;
    const auto begin = line.find_first_not_of(' ');
    if (numbers) all.push_back({line.substr(begin, colon - begin), values[0], values[8]});
  }
  return all;
}

/// Ports of InfiniBand and RoCE adapters, whose counters count words of four bytes.
std::vector<Traffic> rdma_traffic() {
  std::vector<Traffic> all;
  std::error_code error;
  const auto number_in = [](const fs::path& path) {
    std::ifstream file(path);
    double value = 0;
    file >> value;
    return value;
  };
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    std::error_code none;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      const auto counters = port.path() / "counters";
      all.push_back({device.path().filename().string() + ":" + port.path().filename().string(),
                     4 * number_in(counters / "port_rcv_data"),
                     4 * number_in(counters / "port_xmit_data")});
    }
  }
  return all;
}

}  // namespace

std::vector<Traffic> network_traffic() {
  auto traffic = ethernet_traffic();
  const auto rdma = rdma_traffic();
  traffic.insert(traffic.end(), rdma.begin(), rdma.end());
  return traffic;
}

double memory_bytes(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream numbers(line.substr(key.size() + 1));
    double value = 0;
    numbers >> value;
    return value * 1024;
  }
  return 0;
}

double load_of_a_minute() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

}  // namespace trireme::track
