#include "trireme/runtime/network_exports.hpp"

#include "trireme/base/format.hpp"
#include "trireme/topology/discover.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

namespace trireme::runtime {
namespace {

using base::Environment;

constexpr int most_local_ranks = 4096;

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

std::optional<int> number(const Environment& environment, std::string_view variable) {
  const auto text = environment.get(variable);
  return text ? number_in(*text) : std::nullopt;
}

/// The node's entry in Slurm's "2(x3),1": two tasks on each of the first three nodes, one on the
/// fourth.
std::optional<int> tasks_of_node(std::string_view text, int node) {
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    const auto open = part.find("(x");
    const auto tasks = number_in(part.substr(0, open));
    int repeats = 1;
    if (open != std::string_view::npos) {
      if (!part.ends_with(')')) return std::nullopt;
      const auto count = number_in(part.substr(open + 2, part.size() - open - 3));
      if (!count) return std::nullopt;
      repeats = *count;
    }
    if (!tasks) return std::nullopt;
    if (node < repeats) return tasks;
    node -= repeats;
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return std::nullopt;
}

std::optional<NodeShare> checked(std::optional<int> local_rank, std::optional<int> local_ranks,
                                 std::optional<int> all) {
  if (!local_rank || !local_ranks || !all || *local_rank >= *local_ranks ||
      *local_ranks > most_local_ranks) {
    return std::nullopt;
  }
  return NodeShare{*local_rank, *local_ranks, *all > *local_ranks};
}

/// "mlx5_0:1", when it can carry the traffic.
std::optional<std::string> device_of(const topology::Nic& nic) {
  if (!has_rdma(nic.kind) || nic.verbs_name.empty() || nic.active_port.value_or(0) == 0) {
    return std::nullopt;
  }
  return base::format("{}:{}", nic.verbs_name, *nic.active_port);
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

std::optional<NodeShare> announced_share(const Environment& environment) {
  // The innermost launcher first: mpirun inside a Slurm job is mpirun.
  if (environment.has("OMPI_COMM_WORLD_SIZE")) {
    return checked(number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
                   number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"),
                   number(environment, "OMPI_COMM_WORLD_SIZE"));
  }
  const auto node = number(environment, "SLURM_NODEID");
  const auto tasks = environment.get("SLURM_STEP_TASKS_PER_NODE");
  if (!node || !tasks) return std::nullopt;
  return checked(number(environment, "SLURM_LOCALID"), tasks_of_node(*tasks, *node),
                 number(environment, "SLURM_STEP_NUM_TASKS"));
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
  const auto share = announced_share(environment);
  if (!share || !share->several_nodes) return {};
  // What cannot be found out is not set; the ranks hear of a broken machine when they bind.
  const auto machine = topology::discover();
  if (!machine.ok()) return {};
  const auto placement = topology::place_ranks(*machine, share->local_ranks, use);
  if (!placement.ok()) return {};
  std::vector<std::string> texts;
  for (const auto& one : network_exports(*machine, *placement, share->local_rank, environment)) {
    // No other thread reads the environment yet.
    ::setenv(one.variable.c_str(), one.value.c_str(), 1);
    texts.push_back(base::format("{}={}", one.variable, one.value));
  }
  if (texts.empty()) return {};
  const auto& slot = placement->slots[static_cast<std::size_t>(share->local_rank)];
  return base::format("{} set for this rank ({}); set the variable yourself to choose otherwise",
                      base::join(texts, " and "), slot.nic_reason);
}

}  // namespace trireme::runtime
