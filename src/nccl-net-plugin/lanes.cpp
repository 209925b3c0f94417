// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"

#include <algorithm>

namespace trireme::nccl_net {
namespace {

constexpr std::size_t most_lanes = 16;

/// "#   lane[0]:  0:tcp/eth0.0 md[0] -> md[0]/tcp/sysdev[255] am am_bw#0": the transport between
/// the resource's number and that of its path.
std::string lane_in(std::string_view line) {
  const auto lane = line.find("lane[");
  const auto mark = lane == std::string_view::npos ? lane : line.find("]:", lane);
  if (mark == std::string_view::npos) return {};
  line.remove_prefix(mark + 2);
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  line = line.substr(0, line.find(' '));
  const auto number_end = line.find(':');
  if (number_end == std::string_view::npos) return {};
  line.remove_prefix(number_end + 1);
  const auto path = line.rfind('.');
  if (path != std::string_view::npos && line.find('/') < path) line = line.substr(0, path);
  return line.find('/') == std::string_view::npos ? std::string() : std::string(line);
}

}  // namespace

std::vector<std::string> lanes_of(std::string_view endpoint_info) {
  std::vector<std::string> lanes;
  while (!endpoint_info.empty() && lanes.size() < most_lanes) {
    const auto end = std::min(endpoint_info.find('\n'), endpoint_info.size());
    auto lane = lane_in(endpoint_info.substr(0, end));
    endpoint_info.remove_prefix(std::min(end + 1, endpoint_info.size()));
    if (!lane.empty() && std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) {
      lanes.push_back(std::move(lane));
    }
  }
  return lanes;
}

}  // namespace trireme::nccl_net
