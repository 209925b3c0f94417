#include "trireme/runtime/network_exports.hpp"

#include "trireme/base/format.hpp"
#include "trireme/runtime/net_plugin.hpp"
#include "trireme/topology/discover.hpp"

#include <cstdlib>
#include <filesystem>
#include <set>

namespace trireme::runtime {
namespace {

using base::Environment;

/// "mlx5_0:1", when it can carry the traffic.
std::optional<std::string> device_of(const topology::Nic& nic) {
  const auto port = nic.active_port.value_or(0);
  if (!has_rdma(nic.kind) || nic.verbs_name.empty() || port == 0) return std::nullopt;
  return base::format("{}:{}", nic.verbs_name, port);
}

std::vector<std::string> devices_of(const topology::Machine& machine, const std::set<int>& nics) {
  std::vector<std::string> devices;
  for (const int nic : nics) {
    if (auto device = device_of(machine.nics[static_cast<std::size_t>(nic)])) {
      devices.push_back(std::move(*device));
    }
  }
  return devices;
}

}  // namespace

std::vector<std::string> rdma_cards(const topology::Machine& machine) {
  std::vector<std::string> cards;
  for (const auto& nic : machine.nics) {
    if (auto device = device_of(nic)) {
      cards.push_back(std::move(*device));
    } else if (nic.kind == topology::NicKind::slingshot && nic.active_port.value_or(1) != 0) {
      cards.push_back(name_of(nic));
    }
  }
  return cards;
}

std::vector<NetworkExport> network_exports(const topology::Machine& machine,
                                           const topology::Placement& placement, int local_rank,
                                           const Environment& environment) {
  std::set<int> all;
  for (const auto& slot : placement.slots) all.insert(slot.nics.begin(), slot.nics.end());
  const auto& own = placement.slots[static_cast<std::size_t>(local_rank)].nics;
  const auto own_devices = devices_of(machine, {own.begin(), own.end()});
  const auto all_devices = devices_of(machine, all);
  std::vector<NetworkExport> exports;
  if (!own_devices.empty() && !environment.has("UCX_NET_DEVICES")) {
    exports.push_back({"UCX_NET_DEVICES", base::format("{}", base::join(own_devices, ","))});
  }
  const bool on_gpus = placement.slots.front().gpu >= 0;
  if (on_gpus && !all_devices.empty() && !environment.has("NCCL_IB_HCA")) {
    // "=": these names, not all that begin so (mlx5_1 is not mlx5_10).
    exports.push_back({"NCCL_IB_HCA", base::format("={}", base::join(all_devices, ","))});
  }
  return exports;
}

std::string export_network(const Environment& environment, topology::GpuUse use) {
  const auto announced = announced_share(environment);
  if (!announced || !announced->several_nodes) return {};
  const NodeShare share = *announced;
  // What cannot be found out is not set; the ranks hear of a broken machine when they bind.
  const auto machine = topology::discover();
  if (!machine.ok()) return {};
  const auto placement = topology::place_ranks(*machine, share.local_ranks, use);
  if (!placement.ok()) return {};
  std::vector<std::string> texts;
  auto exports = network_exports(*machine, *placement, share.local_rank, environment);
  const bool on_gpus = placement->slots.front().gpu >= 0;
  if (on_gpus && !rdma_cards(*machine).empty()) {
    std::error_code error;
    const auto plugins =
        find_net_plugins(environment, std::filesystem::read_symlink("/proc/self/exe", error));
    for (auto& one : plugin_exports(plugins, environment)) exports.push_back(std::move(one));
  }
  for (const auto& one : exports) {
    // No other thread reads the environment yet.
    ::setenv(one.variable.c_str(), one.value.c_str(), 1);
    texts.push_back(base::format("{}={}", one.variable, one.value));
  }
  if (texts.empty()) return {};
  const auto& slot = placement->slots[static_cast<std::size_t>(share.local_rank)];
  return base::format("{} set for this rank ({}); set the variable yourself to choose otherwise",
                      base::join(texts, " and "), slot.nic_reason);
}

}  // namespace trireme::runtime
