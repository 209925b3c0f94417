// SPDX-License-Identifier: Apache-2.0
#include "hwloc_topology.hpp"
#include "read.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace trireme::topology {
namespace {

/// Memory that programs get by default: not high-bandwidth or GPU memory.
bool is_ordinary(const NumaNode& node) {
  return node.kind.empty() || node.kind == "DRAM";
}

void read_packages(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object)) != nullptr;) {
    machine.packages.push_back({static_cast<int>(object->os_index), info_of(object, "CPUModel")});
  }
  // Virtual machines may not report packages: then the whole machine is one.
  if (machine.packages.empty()) machine.packages.push_back({});
}

/// The package that holds all of `set`; -1 when none does.
int package_of(hwloc_topology_t topology, const Machine& machine, hwloc_const_bitmap_t set) {
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) <= 0) return 0;
  if (hwloc_bitmap_iszero(set) != 0) return -1;
  for (unsigned index = 0; index < machine.packages.size(); ++index) {
    const auto* package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, index);
    if (hwloc_bitmap_isincluded(set, package->cpuset) != 0) return static_cast<int>(index);
  }
  return -1;
}

/// Cores with all their hardware threads. A thread without a core object counts as a core.
void read_cores(hwloc_topology_t topology, Machine& machine) {
  hwloc_obj_t previous = nullptr;
  std::vector<int> pus;
  const auto finish = [&] {
    if (!pus.empty()) machine.cores.back().pus = CpuSet(std::move(pus));
    pus.clear();
  };
  for (hwloc_obj_t pu = nullptr;
       (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr;) {
    auto* core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    auto* owner = core != nullptr ? core : pu;
    if (owner != previous) {
      finish();
      Core next;
      next.os_index = static_cast<int>(owner->os_index);
      next.package = std::max(0, package_of(topology, machine, owner->cpuset));
      machine.cores.push_back(std::move(next));
      previous = owner;
    }
    pus.push_back(static_cast<int>(pu->os_index));
  }
  finish();
}

void read_numa_nodes(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    NumaNode node;
    node.os_index = static_cast<int>(object->os_index);
    node.memory_bytes = object->attr->numanode.local_memory;
    node.pus = pus_in(machine, object->cpuset);
    node.package = package_of(topology, machine, object->cpuset);
    node.kind = object->subtype != nullptr ? object->subtype : "";
    machine.numa_nodes.push_back(std::move(node));
  }
}

void read_distances(hwloc_topology_t topology, Machine& machine) {
  unsigned count = 1;
  hwloc_distances_s* distances = nullptr;
  if (hwloc_distances_get_by_depth(topology, HWLOC_TYPE_DEPTH_NUMANODE, &count, &distances,
                                   HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0) {
    return;
  }
  const std::size_t size = distances->nbobjs;
  if (size == machine.numa_nodes.size()) {
    for (std::size_t from = 0; from < size; ++from) {
      auto& row = machine.numa_nodes[distances->objs[from]->logical_index].distances;
      row.assign(size, 0);
      for (std::size_t to = 0; to < size; ++to) {
        row[distances->objs[to]->logical_index] = distances->values[from * size + to];
      }
    }
  }
  hwloc_distances_release(topology, distances);
}

/// First ordinary node near a core; memory of another kind, or with no core near it, is a last
/// resort.
int numa_node_of(const Machine& machine, const Core& core) {
  int fallback = 0;
  for (std::size_t index = 0; index < machine.numa_nodes.size(); ++index) {
    const auto& node = machine.numa_nodes[index];
    if (!node.pus.contains(core.pus.first())) continue;
    if (is_ordinary(node)) return static_cast<int>(index);
    fallback = static_cast<int>(index);
  }
  return fallback;
}

struct FoundKind {
  std::string core_type;
  int efficiency = 0;
  CpuSet pus;
};

/// Kinds as hwloc ranks them; cores of one type that differ in turbo frequency alone are alike.
std::vector<FoundKind> find_kinds(hwloc_topology_t topology, const Machine& machine) {
  std::vector<FoundKind> kinds;
  const int count = hwloc_cpukinds_get_nr(topology, 0);
  const auto set = make_bitmap();
  for (unsigned index = 0; count > 1 && index < static_cast<unsigned>(count); ++index) {
    int efficiency = -1;
    unsigned info_count = 0;
    hwloc_info_s* infos = nullptr;
    if (hwloc_cpukinds_get_info(topology, index, set.get(), &efficiency, &info_count, &infos, 0) !=
            0 ||
        efficiency < 0) {
      return {};
    }
    FoundKind kind{{}, efficiency, pus_in(machine, set.get())};
    for (unsigned info = 0; info < info_count; ++info) {
      if (std::string_view(infos[info].name) == "CoreType") kind.core_type = infos[info].value;
    }
    if (!kinds.empty() && !kind.core_type.empty() && kinds.back().core_type == kind.core_type) {
      kinds.back().efficiency = efficiency;
      kinds.back().pus = kinds.back().pus.united(kind.pus);
    } else {
      kinds.push_back(std::move(kind));
    }
  }
  return kinds;
}

void read_kinds(hwloc_topology_t topology, Machine& machine) {
  const auto kinds = find_kinds(topology, machine);
  if (kinds.size() < 2) {
    machine.core_kinds.push_back({"uniform", 0});
    return;
  }
  for (std::size_t index = 0; index < kinds.size(); ++index) {
    std::string name = kinds[index].core_type;
    if (index == 0) name = "efficiency";
    if (index + 1 == kinds.size()) name = "performance";
    machine.core_kinds.push_back(
        {name.empty() ? "middle" : std::move(name), kinds[index].efficiency});
  }
  for (auto& core : machine.cores) {
    for (std::size_t index = 0; index < kinds.size(); ++index) {
      if (kinds[index].pus.contains(core.pus.first())) core.kind = static_cast<int>(index);
    }
  }
}

void read_caches(hwloc_topology_t topology, Machine& machine) {
  constexpr std::array<std::pair<hwloc_obj_type_t, int>, 4> levels{{{HWLOC_OBJ_L5CACHE, 5},
                                                                    {HWLOC_OBJ_L4CACHE, 4},
                                                                    {HWLOC_OBJ_L3CACHE, 3},
                                                                    {HWLOC_OBJ_L2CACHE, 2}}};
  for (const auto& [type, level] : levels) {
    for (hwloc_obj_t object = nullptr;
         (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
      machine.caches.push_back({level, object->attr->cache.size, pus_in(machine, object->cpuset)});
    }
  }
}

}  // namespace

CpuSet pus_in(const Machine& machine, hwloc_const_bitmap_t set) {
  std::vector<int> pus;
  if (set == nullptr) return {};
  for (const auto& core : machine.cores) {
    for (const int pu : core.pus.pus()) {
      if (hwloc_bitmap_isset(set, static_cast<unsigned>(pu)) != 0) pus.push_back(pu);
    }
  }
  return CpuSet(std::move(pus));
}

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  if (value == nullptr) return {};
  std::string text(value);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void read_processors(hwloc_topology_t topology, Machine& machine) {
  const auto root = hwloc_get_root_obj(topology);
  machine.name = info_of(root, "HostName");
  if (machine.name.empty()) machine.name = info_of(root, "DMIProductName");
  read_packages(topology, machine);
  read_cores(topology, machine);
  read_numa_nodes(topology, machine);
  read_distances(topology, machine);
  for (auto& core : machine.cores) core.numa_node = numa_node_of(machine, core);
  read_kinds(topology, machine);
  read_caches(topology, machine);
  machine.allowed = pus_in(machine, hwloc_topology_get_allowed_cpuset(topology));
}

}  // namespace trireme::topology
