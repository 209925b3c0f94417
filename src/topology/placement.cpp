// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/placement.hpp"

#include "trireme/base/format.hpp"
#include "trireme/topology/nearness.hpp"

#include "core_groups.hpp"
#include "gpu_order.hpp"
#include "nic_shares.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace trireme::topology {
namespace {

/// Cores that a rank with a GPU needs: one each to launch kernels, to communicate, to read data and
/// to write checkpoints. With fewer, a wider choice of cores is better, though they are farther
/// away.
constexpr int cores_to_drive_a_gpu = 4;

const PciLocation& gpu_at(const Machine& machine, int gpu) {
  return machine.gpus[static_cast<std::size_t>(gpu)].pci;
}

/// Distance between the device and the nearest NUMA node of a group.
std::uint64_t distance_to_group(const Machine& machine, const PciLocation& device,
                                const Group& group) {
  auto nearest = std::numeric_limits<std::uint64_t>::max();
  for (const int core : group) {
    nearest =
        std::min(nearest, distance_to_numa_node(machine, device, core_at(machine, core).numa_node));
  }
  return nearest;
}

/// Group of cores of each rank.
struct Homes {
  std::vector<Group> groups;
  std::vector<std::size_t> home;  // by rank: index into groups
  std::vector<int> count;         // by group: its ranks
  int cores_each = 0;
};

/// Home of each rank: the group nearest to its GPU; of equally near ones the one that then has most
/// cores for each of its ranks.
Homes find_homes(const Machine& machine, const std::vector<int>& cores,
                 const std::vector<int>& gpus, Level level) {
  Homes homes;
  homes.groups = group_cores(machine, cores, level);
  homes.count.assign(homes.groups.size(), 0);
  for (const int gpu : gpus) {
    std::size_t best = homes.groups.size();
    std::pair<std::uint64_t, double> best_cost;
    for (std::size_t group = 0; group < homes.groups.size(); ++group) {
      const std::pair<std::uint64_t, double> cost{
          distance_to_group(machine, gpu_at(machine, gpu), homes.groups[group]),
          (homes.count[group] + 1) / static_cast<double>(homes.groups[group].size())};
      if (best == homes.groups.size() || cost < best_cost) {
        best = group;
        best_cost = cost;
      }
    }
    homes.home.push_back(best);
    ++homes.count[best];
  }
  homes.cores_each = std::numeric_limits<int>::max();
  for (std::size_t group = 0; group < homes.groups.size(); ++group) {
    if (homes.count[group] == 0) continue;
    homes.cores_each = std::min(homes.cores_each,
                                static_cast<int>(homes.groups[group].size()) / homes.count[group]);
  }
  return homes;
}

struct Choice {
  Level level = Level::numa_node;
  Homes homes;
};

/// The narrowest level that leaves each rank cores enough to drive its GPU (or an even share, if
/// that is less), else the narrowest that leaves it any; none where ranks must share cores.
std::optional<Choice> choose_homes(const Machine& machine, const std::vector<int>& cores,
                                   const std::vector<int>& gpus) {
  const int even_share = static_cast<int>(cores.size() / gpus.size());
  const int enough = std::max(1, std::min(cores_to_drive_a_gpu, even_share));
  for (const int wanted : {enough, 1}) {
    for (const auto level : {Level::numa_node, Level::package}) {
      auto homes = find_homes(machine, cores, gpus, level);
      if (homes.cores_each >= wanted) return Choice{level, std::move(homes)};
    }
  }
  return std::nullopt;
}

std::string cpu_reason(const Machine& machine, const BindingSlot& slot, int gpu, Level level) {
  auto text = own_cores_text(machine, slot);
  std::vector<int> near;
  for (const int node : slot.numa_nodes) {
    if (distance_to_numa_node(machine, gpu_at(machine, gpu), node) == 0) near.push_back(node);
  }
  if (machine.numa_nodes.size() == 1 && near == slot.numa_nodes) return text;
  if (near == slot.numa_nodes) return text + base::format(", near GPU {}", gpu);
  text += base::format(", the nearest to GPU {} ", gpu);
  return text + (level == Level::package
                     ? "with enough cores (its own NUMA node has too few for its ranks)"
                     : "that may be used");
}

/// Near-GPU cores for each rank; none where ranks must share.
std::optional<BindingPlan> plan_near_gpus(const Machine& machine, const std::vector<int>& gpus) {
  const auto allowed = allowed_cores(machine);
  const int ranks = static_cast<int>(gpus.size());
  const auto usable = usable_cores(machine, allowed, ranks);
  const auto choice = choose_homes(machine, usable, gpus);
  if (!choice) return std::nullopt;
  const auto& homes = choice->homes;
  BindingPlan plan;
  std::vector<int> placed(homes.groups.size(), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto home = homes.home[static_cast<std::size_t>(rank)];
    const auto slice =
        slice_of(machine, homes.groups[home], placed[home]++, homes.count[home], homes.cores_each);
    auto slot = make_slot(machine, rank, slice);
    slot.reason = cpu_reason(machine, slot, gpus[static_cast<std::size_t>(rank)], choice->level);
    plan.slots.push_back(std::move(slot));
  }
  const auto rest = usable.size() - static_cast<std::size_t>(homes.cores_each * ranks);
  plan.notes = notes_of(0, 0, allowed.size() - usable.size());
  if (rest > 0) {
    plan.notes.push_back(
        base::format("{} {} left to the system: every rank gets equally many, near its GPU",
                     cores_text(rest), rest == 1 ? "is" : "are"));
  }
  return plan;
}

std::string gpu_reason(const Machine& machine, const std::vector<int>& gpus, std::size_t rank) {
  const auto total = machine.gpus.size();
  const auto sharing = std::count(gpus.begin(), gpus.end(), gpus[rank]);
  if (sharing > 1) {
    return base::format("shared by {} ranks: {} ranks on {} GPU{}", sharing, gpus.size(), total,
                        total == 1 ? "" : "s");
  }
  if (gpus.size() == 1) {
    return total == 1 ? "the only one" : base::format("its own; the first of {}", total);
  }
  if (gpus.size() < total) {
    return base::format("its own; {} ranks are spread evenly over {} GPUs", gpus.size(), total);
  }
  return "its own; neighbours among ranks are neighbours among GPUs";
}

void warn_of_sharing(Placement& placement, std::size_t ranks, std::size_t gpus) {
  if (ranks <= gpus) return;
  placement.warnings.push_back(base::format(
      "{} local ranks share {} GPU{} (they take turns, and NCCL refuses two ranks on one GPU); "
      "start {} on this node",
      ranks, gpus, gpus == 1 ? "" : "s", gpus));
}

/// Placement of given CPUs and GPUs, with NICs, notes and warnings.
Placement assemble(const Machine& machine, BindingPlan plan, const std::vector<int>& gpus) {
  Placement placement;
  placement.notes = std::move(plan.notes);
  placement.warnings = std::move(plan.warnings);
  for (std::size_t rank = 0; rank < plan.slots.size(); ++rank) {
    PlacementSlot slot;
    slot.cpus = std::move(plan.slots[rank]);
    if (!gpus.empty()) {
      slot.gpu = gpus[rank];
      slot.gpu_reason = gpu_reason(machine, gpus, rank);
    }
    placement.slots.push_back(std::move(slot));
  }
  if (!gpus.empty()) warn_of_sharing(placement, gpus.size(), machine.gpus.size());
  share_nics(machine, placement.slots);
  return placement;
}

}  // namespace

base::Result<Placement> place_ranks(const Machine& machine, int local_ranks, GpuUse use) {
  auto plan = plan_binding(machine, local_ranks);
  if (!plan.ok()) return plan.failure();
  std::vector<int> gpus;
  if (use == GpuUse::one_each && !machine.gpus.empty()) {
    gpus = deal_gpus(machine, local_ranks);
    if (auto near = plan_near_gpus(machine, gpus)) plan = std::move(*near);
  }
  return assemble(machine, std::move(plan).value(), gpus);
}

base::Result<Placement> place_ranks(const Machine& machine, std::span<const CpuSet> masks,
                                    GpuUse use) {
  const bool equal = std::all_of(masks.begin(), masks.end(),
                                 [&](const CpuSet& mask) { return mask == masks.front(); });
  if (equal) {
    auto narrowed = machine;
    if (!masks.empty()) narrowed.allowed = masks.front().intersected(all_pus(machine));
    return place_ranks(narrowed, static_cast<int>(masks.size()), use);
  }
  auto plan = plan_binding(machine, masks);
  if (!plan.ok()) return plan.failure();
  std::vector<int> gpus;
  if (use == GpuUse::one_each && !machine.gpus.empty()) {
    gpus = gpus_near_slots(machine, plan->slots);
  }
  return assemble(machine, std::move(plan).value(), gpus);
}

base::Result<Machine> with_gpus(Machine machine, std::span<const std::string> bus_ids) {
  std::vector<Gpu> kept;
  for (const auto& gpu : machine.gpus) {
    if (std::find(bus_ids.begin(), bus_ids.end(), gpu.pci.bus_id) != bus_ids.end()) {
      kept.push_back(gpu);
    }
  }
  for (const auto& id : bus_ids) {
    const bool known =
        std::any_of(kept.begin(), kept.end(), [&](const Gpu& gpu) { return gpu.pci.bus_id == id; });
    if (known) continue;
    std::vector<std::string> present;
    for (const auto& gpu : machine.gpus) present.push_back(gpu.pci.bus_id);
    return base::Failure{
        base::ExitCode::topology,
        base::format(
            "there is no GPU at PCI bus id {} (its place among CPUs and NICs is "
            "not known); this machine has {}",
            id,
            present.empty() ? std::string("none") : base::format("{}", base::join(present, ", ")))};
  }
  machine.gpus = std::move(kept);
  return machine;
}

}  // namespace trireme::topology
