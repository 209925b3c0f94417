// SPDX-License-Identifier: Apache-2.0
// Exchange between ranks of the connections that their NCCL has opened.
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/runtime/transport.hpp"

namespace trireme::runtime {
namespace {

using base::Json;
using Names = std::vector<std::string>;

/// First byte of a verdict on its way.
constexpr char warning_mark = '!';
constexpr char plain_mark = '-';

Json to_json(const TransportReport& report) {
  const auto& transport = report.transport;
  Json networks = Json::object();
  for (const auto& [name, network] : transport.networks) {
    networks[name] = {network.channels, network.gpu_direct_channels};
  }
  return {{"node", report.node},
          {"rdma_nics", report.rdma_nics},
          {"unknown", report.unknown},
          {"networks", networks},
          {"plugins", transport.plugins},
          {"devices", transport.devices},
          {"ways", transport.ways},
          {"inside", {transport.gpu_channels, transport.fabric_channels, transport.host_channels}}};
}

TransportReport report_of(const Json& json) {
  TransportReport report;
  report.node = json.at("node").get<int>();
  report.rdma_nics = json.at("rdma_nics").get<Names>();
  report.unknown = json.at("unknown").get<std::string>();
  auto& transport = report.transport;
  for (const auto& [name, counts] : json.at("networks").items()) {
    transport.networks[name] = {counts.at(0).get<int>(), counts.at(1).get<int>()};
  }
  transport.plugins = json.at("plugins").get<Names>();
  for (const auto& [name, listed] : json.at("devices").items()) {
    transport.devices[name] = listed.get<Names>();
  }
  transport.ways = json.at("ways").get<Names>();
  const auto& inside = json.at("inside");
  transport.gpu_channels = inside.at(0).get<int>();
  transport.fabric_channels = inside.at(1).get<int>();
  transport.host_channels = inside.at(2).get<int>();
  return report;
}

}  // namespace

TransportVerdict prove_transport(comm::ProcessGroup& world, RdmaRule rule,
                                 const TransportReport& mine) {
  const auto texts = comm::gather_bytes(world, base::json_text(to_json(mine)));
  // The first rank judges for all: reports of ten thousand ranks lie on it alone.
  const auto verdict = [&]() -> base::Result<std::string> {
    if (world.rank() != 0) return std::string();
    std::vector<TransportReport> reports;
    for (const auto& text : texts) {
      const auto json = base::parse_json(text, "a rank's report");
      if (!json.ok()) return json.failure();
      reports.push_back(report_of(*json));
    }
    const auto judged = judge_transport(rule, reports);
    if (!judged.ok()) return judged.failure();
    return (judged->is_warning ? warning_mark : plain_mark) + judged->sentence;
  };
  const auto text = comm::agree_on_first(world, verdict());
  return {text.substr(1), text.front() == warning_mark};
}

}  // namespace trireme::runtime
