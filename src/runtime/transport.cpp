// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/transport.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/comm/agree.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace trireme::runtime {
namespace {

using base::format;
using comm::NcclTransport;

constexpr std::string_view own_plugin = "Trireme";

enum class Carrier { nothing, rdma, tcp, unknown };

/// Connections of all ranks together.
struct Whole {
  NcclTransport transport;
  std::set<int> nodes;
  std::vector<std::string> rdma_nics;
  /// The first rank whose log is not known, and why.
  int silent_rank = -1;
  std::string silence;
};

void join(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const auto& each : more) {
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  }
}

Whole whole_of(std::span<const TransportReport> reports) {
  Whole whole;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto& report = reports[rank];
    whole.nodes.insert(report.node);
    join(whole.rdma_nics, report.rdma_nics);
    if (!report.unknown.empty() && whole.silent_rank < 0) {
      whole.silent_rank = static_cast<int>(rank);
      whole.silence = report.unknown;
    }
    auto& all = whole.transport;
    for (const auto& [name, network] : report.transport.networks) {
      all.networks[name].channels += network.channels;
      all.networks[name].gpu_direct_channels += network.gpu_direct_channels;
    }
    for (const auto& [name, devices] : report.transport.devices) join(all.devices[name], devices);
    join(all.plugins, report.transport.plugins);
    join(all.ways, report.transport.ways);
    all.gpu_channels += report.transport.gpu_channels;
    all.fabric_channels += report.transport.fabric_channels;
    all.host_channels += report.transport.host_channels;
  }
  return whole;
}

template <std::size_t n>
bool starts_with_any(const std::string& text, const std::array<const char*, n>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](const char* start) { return text.starts_with(start); });
}

/// Carrier by UCX's transports. Transports inside a node are not evidence of the network.
Carrier carrier_of_ways(const std::vector<std::string>& ways) {
  constexpr std::array rdma{"rc_", "dc_", "ud_", "srd"};
  const auto is_rdma = [&](const std::string& way) { return starts_with_any(way, rdma); };
  if (std::any_of(ways.begin(), ways.end(), is_rdma)) return Carrier::rdma;
  const auto is_tcp = [](const std::string& way) { return way.starts_with("tcp/"); };
  return std::any_of(ways.begin(), ways.end(), is_tcp) ? Carrier::tcp : Carrier::unknown;
}

Carrier carrier_of(const std::string& name, const NcclTransport::Network& network,
                   const std::vector<std::string>& ways) {
  constexpr std::array verbs{"IB", "UCX", "SHARP"};
  if (name == own_plugin) return carrier_of_ways(ways);
  if (name.find("Socket") != std::string::npos || name.find("TCP") != std::string::npos) {
    return Carrier::tcp;
  }
  if (starts_with_any(name, verbs) || network.gpu_direct_channels > 0) return Carrier::rdma;
  return Carrier::unknown;
}

/// The worst of the networks that have channels.
Carrier carrier_of(const NcclTransport& transport) {
  auto worst = Carrier::nothing;
  for (const auto& [name, network] : transport.networks) {
    const auto carrier = carrier_of(name, network, transport.ways);
    if (carrier == Carrier::tcp) return carrier;
    if (worst != Carrier::unknown) worst = carrier;
  }
  return worst;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  const auto shown = std::min(names.size(), most);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(shown));
  auto text = format("{}", base::join(first, ", "));
  return names.size() > most ? text + format(" and {} more", names.size() - most) : text;
}

/// Devices in the words of the line that lists them; of sockets the interfaces alone.
std::vector<std::string> devices_of(const std::string& network, const NcclTransport& transport) {
  if (network == own_plugin) return transport.ways;
  std::vector<std::string> devices;
  for (const auto& [name, listed] : transport.devices) {
    const bool is_socket = name == "Socket";
    if (is_socket != (network == "Socket")) continue;
    for (const auto& device : listed) {
      join(devices, {is_socket ? device.substr(0, device.find(':')) : device});
    }
  }
  return devices;
}

std::string plugin_text(const std::string& network, const NcclTransport& transport) {
  if (network == "IB") return "IB (NCCL's own verbs)";
  if (network == "Socket") return "TCP sockets (Socket, NCCL's own)";
  return format("{} (plugin{}{})", network, transport.plugins.empty() ? "" : " ",
                base::join(transport.plugins, ", "));
}

std::string direct_text(const NcclTransport::Network& network) {
  if (network.gpu_direct_channels == 0) return "without GPUDirect RDMA, through the host's memory";
  if (network.gpu_direct_channels == network.channels) return "with GPUDirect RDMA";
  return format("with GPUDirect RDMA on {} of {} channels", network.gpu_direct_channels,
                network.channels);
}

std::string inside_text(const NcclTransport& transport) {
  std::vector<std::string> ways;
  if (transport.gpu_channels > 0) ways.emplace_back("from GPU to GPU (P2P)");
  if (transport.host_channels > 0) ways.emplace_back("through the host's memory (SHM)");
  return format("{}", base::join(ways, " and "));
}

std::string networks_text(const NcclTransport& transport) {
  std::vector<std::string> texts;
  for (const auto& [name, network] : transport.networks) {
    const auto devices = devices_of(name, transport);
    texts.push_back(format("{}{}{}, {}", plugin_text(name, transport),
                           devices.empty() ? "" : " over ", some_of(devices),
                           direct_text(network)));
  }
  if (transport.fabric_channels > 0) texts.emplace_back("NVLink between nodes (P2P/MNNVL)");
  return format("{}", base::join(texts, "; "));
}

std::string sentence_of(const Whole& whole) {
  const auto inside = inside_text(whole.transport);
  const auto between = networks_text(whole.transport);
  if (whole.nodes.size() > 1) {
    return format("NCCL moves data between nodes by {}{}{}", between,
                  inside.empty() ? "" : "; inside nodes ", inside);
  }
  if (inside.empty() && between.empty()) return "NCCL has nothing to move: one rank alone";
  return format("NCCL moves data inside the node {}{}{}, and needs no network", inside,
                inside.empty() || between.empty() ? "" : " and by ",
                between.empty() ? "" : between);
}

base::Failure refusal(const std::string& problem, const std::string& remedy) {
  return {base::ExitCode::topology,
          format("{} (training would wait for the network); {}", problem, remedy)};
}

std::string nics_text(const Whole& whole) {
  return whole.rdma_nics.empty()
             ? "no node has an RDMA NIC whose port is up"
             : format("there are RDMA NICs whose port is up ({})", some_of(whole.rdma_nics));
}

base::Result<TransportVerdict> judge_unknown(RdmaRule rule, const std::string& reason) {
  const auto problem = format("what NCCL moves data between nodes with is not known: {}", reason);
  if (rule != RdmaRule::required) return TransportVerdict{problem, true};
  return refusal(problem + ", and comm.require_rdma = true wants it shown",
                 "make it known so, or set comm.require_rdma = auto");
}

}  // namespace

base::Result<TransportVerdict> judge_transport(RdmaRule rule,
                                               std::span<const TransportReport> reports) {
  const auto whole = whole_of(reports);
  const bool is_silent = whole.silent_rank >= 0;
  if (whole.nodes.size() < 2) {
    if (!is_silent) return TransportVerdict{sentence_of(whole), false};
    return TransportVerdict{
        format("NCCL stays inside the node; by what is not known: {}", whole.silence), false};
  }
  const auto carrier = carrier_of(whole.transport);
  const auto sentence = sentence_of(whole);
  if (carrier == Carrier::tcp) {
    const bool forbidden =
        rule == RdmaRule::required || (rule == RdmaRule::automatic && !whole.rdma_nics.empty());
    if (!forbidden) return TransportVerdict{sentence, !whole.rdma_nics.empty()};
    return refusal(
        format("{}, which is TCP, and {}", sentence, nics_text(whole)),
        "see that libibverbs is installed and NCCL_NET, NCCL_IB_DISABLE, NCCL_IB_HCA and UCX_TLS "
        "forbid none of them, or go on with comm.require_rdma = false");
  }
  if (is_silent) {
    return judge_unknown(rule, format("rank {}: {}", whole.silent_rank, whole.silence));
  }
  if (carrier == Carrier::unknown) {
    return judge_unknown(rule, format("it says {}, and not what that is", sentence));
  }
  if (carrier == Carrier::nothing && whole.transport.fabric_channels == 0) {
    return judge_unknown(rule, "its log tells of no way between nodes");
  }
  return TransportVerdict{sentence, false};
}

base::Status check_other_groups(RdmaRule rule, int nodes, std::string_view groups) {
  if (rule != RdmaRule::required || nodes < 2) return {};
  return base::Failure{
      base::ExitCode::topology,
      format("comm.require_rdma = true cannot be shown of process groups that are {} (NCCL alone "
             "tells what carries its data); set comm.backend = nccl, or comm.require_rdma = auto",
             groups)};
}

}  // namespace trireme::runtime
