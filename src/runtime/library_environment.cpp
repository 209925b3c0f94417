// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/library_environment.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/runtime/launcher_environment.hpp"
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

bool on_gpus(const topology::Placement& placement) {
  return placement.slots.front().gpu >= 0;
}

}  // namespace

std::vector<std::string> rdma_nics(const topology::Machine& machine) {
  std::vector<std::string> nics;
  for (const auto& nic : machine.nics) {
    if (auto device = device_of(nic)) {
      nics.push_back(std::move(*device));
    } else if (nic.kind == topology::NicKind::slingshot && nic.active_port.value_or(1) != 0) {
      nics.push_back(name_of(nic));
    }
  }
  return nics;
}

std::vector<EnvironmentSetting> network_settings(const topology::Machine& machine,
                                                 const topology::Placement& placement,
                                                 int local_rank, const Environment& environment) {
  std::set<int> all;
  for (const auto& slot : placement.slots) all.insert(slot.nics.begin(), slot.nics.end());
  const auto& slot = placement.slots[static_cast<std::size_t>(local_rank)];
  const auto own_devices = devices_of(machine, {slot.nics.begin(), slot.nics.end()});
  const auto all_devices = devices_of(machine, all);
  std::vector<EnvironmentSetting> settings;
  if (!own_devices.empty() && !environment.has("UCX_NET_DEVICES")) {
    settings.push_back(
        {"UCX_NET_DEVICES", base::format("{}", base::join(own_devices, ",")), slot.nic_reason});
  }
  if (on_gpus(placement) && !all_devices.empty() && !environment.has("NCCL_IB_HCA")) {
    // Prefix "=": exact names, not prefixes (mlx5_1 is not mlx5_10).
    settings.push_back(
        {"NCCL_IB_HCA", base::format("={}", base::join(all_devices, ",")), slot.nic_reason});
  }
  return settings;
}

namespace {

/// Settings for tasks of a job on several nodes, whose launcher gives their place on the node.
std::vector<EnvironmentSetting> between_nodes(const Environment& environment,
                                              topology::GpuUse gpus) {
  const auto share = announced_share(environment);
  if (!share || !share->several_nodes) return {};
  // A machine that cannot be read is reported when ranks bind.
  const auto machine = topology::discover();
  if (!machine.ok()) return {};
  const auto placement = topology::place_ranks(*machine, share->local_ranks, gpus);
  if (!placement.ok()) return {};
  auto settings = network_settings(*machine, *placement, share->local_rank, environment);
  if (!on_gpus(*placement) || rdma_nics(*machine).empty()) return settings;
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  for (auto& one : plugin_settings(find_net_plugins(environment, executable), environment)) {
    settings.push_back(std::move(one));
  }
  return settings;
}

constexpr const char* queues_variable = "CUDA_DEVICE_MAX_CONNECTIONS";
/// CUDA's maximum, and its default without the variable.
constexpr int most_queues = 32;
constexpr int usual_queues = 8;

/// Value that CUDA reads from the text; none for one that it rejects.
std::optional<int> queues_in(const std::string& text) {
  const auto queues = base::number_in<int>(text);
  return queues && *queues >= 1 && *queues <= most_queues ? queues : std::nullopt;
}

}  // namespace

LibraryEnvironment queue_settings(const Environment& environment) {
  const auto given = environment.get(queues_variable);
  if (!given) {
    return {{{queues_variable, base::format("{}", most_queues),
              base::format("it has up to {} streams, which do not wait for each other in queues of "
                           "their own",
                           streams_of_rank)}},
            {}};
  }
  const auto queues = queues_in(*given);
  if (!queues) {
    return {{},
            {base::format("{} = {} is no number from 1 to {} (CUDA then has {} queues for a rank's "
                          "{} streams, and those that share one wait for each other); unset it",
                          queues_variable, *given, most_queues, usual_queues, streams_of_rank)}};
  }
  if (*queues < streams_of_rank) {
    return {{},
            {base::format("{} = {} (a rank has up to {} streams: those that share a queue wait for "
                          "each other, so gradients and messages do not travel beside computation, "
                          "and ranks may wait for each other for ever); unset it, or take {}",
                          queues_variable, *given, streams_of_rank, most_queues)}};
  }
  return {};
}

LibraryEnvironment library_environment(const Environment& environment, topology::GpuUse gpus) {
  LibraryEnvironment libraries;
  if (gpus == topology::GpuUse::one_each) libraries = queue_settings(environment);
  auto network = between_nodes(environment, gpus);
  libraries.settings.insert(libraries.settings.begin(), network.begin(), network.end());
  return libraries;
}

void apply(const LibraryEnvironment& libraries) {
  for (const auto& one : libraries.settings) {
    ::setenv(one.variable.c_str(), one.value.c_str(), 1);
  }
}

std::vector<std::string> sentences(const LibraryEnvironment& libraries) {
  std::vector<std::string> texts;
  const auto& settings = libraries.settings;
  for (auto first = settings.begin(); first != settings.end();) {
    std::vector<std::string> alike;
    auto next = first;
    for (; next != settings.end() && next->reason == first->reason; ++next) {
      alike.push_back(base::format("{}={}", next->variable, next->value));
    }
    texts.push_back(
        base::format("{} set for this rank ({}); set the variable yourself to choose otherwise",
                     base::join(alike, " and "), first->reason));
    first = next;
  }
  return texts;
}

}  // namespace trireme::runtime
