// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/describe.hpp"

#include "trireme/base/format.hpp"
#include "trireme/topology/nearness.hpp"

#include <algorithm>
#include <map>

namespace trireme::topology {
namespace {

/// Lines of the tree, two blanks deeper for each level.
class Tree {
 public:
  void line(int depth, const std::string& text) {
    text_.append(static_cast<std::size_t>(depth) * 2, ' ');
    text_ += text;
    text_ += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string count_text(std::size_t count, std::string_view singular) {
  return base::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

std::string joined(const std::string& name, const std::string& detail) {
  return detail.empty() ? name : name + "  " + detail;
}

/// "GPU 3  0000:19:00.0  NVIDIA ...".
std::string gpu_text(const Machine& machine, int gpu) {
  const auto& device = machine.gpus[static_cast<std::size_t>(gpu)];
  return joined(base::format("GPU {}  {}", gpu, device.pci.bus_id), device.pci.name);
}

std::string nic_text(const Machine& machine, int nic) {
  const auto& device = machine.nics[static_cast<std::size_t>(nic)];
  auto text = base::format("NIC {}  {}  {}", nic, device.pci.bus_id, name_of(device.kind));
  if (!device.verbs_name.empty()) text += "  " + device.verbs_name;
  if (!device.interface_name.empty()) text += "  " + device.interface_name;
  if (device.active_port == 0) text += "  down";
  return joined(text, device.pci.name);
}

/// Devices by the bridge right above them, and which bridges lead to any.
struct Branches {
  std::map<int, std::vector<std::string>> devices;
  std::map<int, std::vector<int>> bridges;  // of interest, by parent
};

Branches branches_of(const Machine& machine, const std::vector<int>& gpus,
                     const std::vector<int>& nics) {
  Branches branches;
  std::vector<bool> seen(machine.bridges.size(), false);
  const auto climb = [&](int bridge) {
    while (bridge >= 0 && !seen[static_cast<std::size_t>(bridge)]) {
      seen[static_cast<std::size_t>(bridge)] = true;
      bridge = machine.bridges[static_cast<std::size_t>(bridge)].parent;
    }
  };
  for (const int gpu : gpus) {
    const int bridge = machine.gpus[static_cast<std::size_t>(gpu)].pci.bridge;
    branches.devices[bridge].push_back(gpu_text(machine, gpu));
    climb(bridge);
  }
  for (const int nic : nics) {
    const int bridge = machine.nics[static_cast<std::size_t>(nic)].pci.bridge;
    branches.devices[bridge].push_back(nic_text(machine, nic));
    climb(bridge);
  }
  for (std::size_t bridge = 0; bridge < seen.size(); ++bridge) {
    if (seen[bridge]) {
      branches.bridges[machine.bridges[bridge].parent].push_back(static_cast<int>(bridge));
    }
  }
  return branches;
}

/// Chain of bridges without branches as one line: "PCI 0000:17 > 0000:17:01.0 > 0000:18:00.0".
void add_branch(Tree& tree, const Machine& machine, const Branches& branches, int depth,
                int bridge) {
  std::string path = machine.bridges[static_cast<std::size_t>(bridge)].bus_id;
  auto below = branches.bridges.find(bridge);
  while (!branches.devices.contains(bridge) && below != branches.bridges.end() &&
         below->second.size() == 1) {
    bridge = below->second.front();
    path += " > " + machine.bridges[static_cast<std::size_t>(bridge)].bus_id;
    below = branches.bridges.find(bridge);
  }
  tree.line(depth, "PCI " + path);
  if (const auto here = branches.devices.find(bridge); here != branches.devices.end()) {
    for (const auto& device : here->second) tree.line(depth + 1, device);
  }
  if (below == branches.bridges.end()) return;
  for (const int next : below->second) add_branch(tree, machine, branches, depth + 1, next);
}

/// All devices whose nearest nodes are exactly `nodes`.
void add_devices(Tree& tree, const Machine& machine, int depth, const std::vector<int>& nodes) {
  std::vector<int> gpus;
  std::vector<int> nics;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    if (machine.gpus[gpu].pci.numa_nodes == nodes) gpus.push_back(static_cast<int>(gpu));
  }
  for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {
    if (machine.nics[nic].pci.numa_nodes == nodes) nics.push_back(static_cast<int>(nic));
  }
  const auto branches = branches_of(machine, gpus, nics);
  if (const auto loose = branches.devices.find(-1); loose != branches.devices.end()) {
    for (const auto& device : loose->second) tree.line(depth, device);
  }
  if (const auto roots = branches.bridges.find(-1); roots != branches.bridges.end()) {
    for (const int bridge : roots->second) add_branch(tree, machine, branches, depth, bridge);
  }
}

/// "8 cores (PUs 0-7,64-71; 2 may be used)" of one NUMA node.
std::string cores_text(const Machine& machine, const std::vector<int>& cores) {
  std::vector<int> pus;
  for (const int core : cores) {
    const auto& own = machine.cores[static_cast<std::size_t>(core)].pus.pus();
    pus.insert(pus.end(), own.begin(), own.end());
  }
  const CpuSet set(std::move(pus));
  auto text = base::format("{} (PUs {})", count_text(cores.size(), "core"), set.text());
  if (!machine.allowed.contains(set)) {
    const auto usable = machine.allowed.intersected(set);
    text += usable.empty() ? std::string(", not to be used")
                           : base::format(", of which PUs {} may be used", usable.text());
  }
  return text;
}

void add_kinds(Tree& tree, const Machine& machine, int depth, const std::vector<int>& cores) {
  if (machine.core_kinds.size() < 2) return;
  for (std::size_t kind = machine.core_kinds.size(); kind-- > 0;) {
    std::vector<int> alike;
    std::copy_if(cores.begin(), cores.end(), std::back_inserter(alike), [&](int core) {
      return machine.cores[static_cast<std::size_t>(core)].kind == static_cast<int>(kind);
    });
    if (alike.empty()) continue;
    tree.line(depth, machine.core_kinds[kind].name + ": " + cores_text(machine, alike));
  }
}

/// Caches of a node by level, size and number of cores that share one.
void add_caches(Tree& tree, const Machine& machine, int depth, const CpuSet& pus) {
  std::map<std::tuple<int, std::uint64_t, int>, int, std::greater<>> alike;
  for (const auto& cache : machine.caches) {
    if (cache.pus.empty() || !pus.contains(cache.pus.first())) continue;
    const auto sharing =
        std::count_if(machine.cores.begin(), machine.cores.end(),
                      [&](const Core& core) { return cache.pus.intersects(core.pus); });
    ++alike[{cache.level, cache.size_bytes, static_cast<int>(sharing)}];
  }
  for (const auto& [what, count] : alike) {
    const auto& [level, size_bytes, sharing] = what;
    tree.line(depth,
              base::format("{} x L{} {}, each of {}", count, level, base::bytes_text(size_bytes),
                           count_text(static_cast<std::size_t>(sharing), "core")));
  }
}

void add_numa_node(Tree& tree, const Machine& machine, int depth, int index) {
  const auto& node = machine.numa_nodes[static_cast<std::size_t>(index)];
  std::vector<int> cores;
  std::vector<int> pus;
  for (std::size_t core = 0; core < machine.cores.size(); ++core) {
    if (machine.cores[core].numa_node != index) continue;
    cores.push_back(static_cast<int>(core));
    pus.insert(pus.end(), machine.cores[core].pus.pus().begin(),
               machine.cores[core].pus.pus().end());
  }
  auto text = base::format("NUMA node {}  {}", node.os_index, base::bytes_text(node.memory_bytes));
  if (!node.kind.empty()) text += "  " + node.kind;
  text += cores.empty() ? "  no cores of its own" : "  " + cores_text(machine, cores);
  tree.line(depth, text);
  add_kinds(tree, machine, depth + 1, cores);
  add_caches(tree, machine, depth + 1, CpuSet(std::move(pus)));
  add_devices(tree, machine, depth + 1, {index});
}

/// Package with the nodes inside it; nothing for one that shares its node with others.
void add_package(Tree& tree, const Machine& machine, int index) {
  const auto& package = machine.packages[static_cast<std::size_t>(index)];
  bool first = true;
  for (std::size_t node = 0; node < machine.numa_nodes.size(); ++node) {
    if (machine.numa_nodes[node].package != index) continue;
    if (first) tree.line(1, joined(base::format("package {}", package.os_index), package.model));
    first = false;
    add_numa_node(tree, machine, 2, static_cast<int>(node));
  }
}

/// Devices that are near several nodes, grouped by which.
void add_wide_devices(Tree& tree, const Machine& machine) {
  std::map<std::vector<int>, bool> groups;
  const auto note = [&](const PciLocation& location) {
    if (location.numa_nodes.size() != 1) groups[location.numa_nodes] = true;
  };
  for (const auto& gpu : machine.gpus) note(gpu.pci);
  for (const auto& nic : machine.nics) note(nic.pci);
  for (const auto& [nodes, present] : groups) {
    std::vector<int> numbers;
    for (const int node : nodes) {
      numbers.push_back(machine.numa_nodes[static_cast<std::size_t>(node)].os_index);
    }
    std::sort(numbers.begin(), numbers.end());
    tree.line(1, "near NUMA nodes " + ranges_text(numbers));
    add_devices(tree, machine, 2, nodes);
  }
}

}  // namespace

std::string tree_text(const Machine& machine) {
  Tree tree;
  auto title = machine.name.empty() ? std::string("machine") : machine.name;
  title += base::format(
      ": {}, {}, {}, {}, {}", count_text(machine.packages.size(), "package"),
      count_text(machine.numa_nodes.size(), "NUMA node"), count_text(machine.cores.size(), "core"),
      count_text(static_cast<std::size_t>(all_pus(machine).size()), "hardware thread"),
      base::bytes_text(total_memory_bytes(machine)));
  tree.line(0, title);
  for (std::size_t package = 0; package < machine.packages.size(); ++package) {
    add_package(tree, machine, static_cast<int>(package));
  }
  for (std::size_t node = 0; node < machine.numa_nodes.size(); ++node) {
    if (machine.numa_nodes[node].package < 0) {
      add_numa_node(tree, machine, 1, static_cast<int>(node));
    }
  }
  add_wide_devices(tree, machine);
  std::vector<int> gpus;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) gpus.push_back(static_cast<int>(gpu));
  const auto choices = assign_nics(machine, gpus);
  if (!choices.empty()) tree.line(1, "nearest NIC of each GPU");
  for (const auto& choice : choices) tree.line(2, choice.reason);
  return tree.take();
}

std::string plan_text(const BindingPlan& plan) {
  std::string text;
  for (const auto& slot : plan.slots) {
    text += base::format("local rank {:>3}  {:>3} thread{}  PUs {}  {}\n", slot.local_rank,
                         slot.compute_pus.size(), slot.compute_pus.size() == 1 ? " " : "s",
                         slot.pus.text(), slot.reason);
  }
  for (const auto& note : plan.notes) text += "note: " + note + "\n";
  for (const auto& warning : plan.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace trireme::topology
