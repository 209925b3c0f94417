#include "bind.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/runtime/agree.hpp"
#include "trireme/runtime/network_exports.hpp"
#include "trireme/topology/binding.hpp"
#include "trireme/topology/discover.hpp"

#include <charconv>

namespace trireme::runtime {
namespace {

constexpr int thread_limit = 4096;

/// CPU masks of the node's ranks as they are now, by local rank.
base::Result<std::vector<topology::CpuSet>> neighbour_masks(comm::ProcessGroup& node,
                                                            const topology::CpuSet& own) {
  std::vector<topology::CpuSet> masks;
  for (const auto& text : all_gather_text(node, own.text())) {
    auto mask = topology::CpuSet::parse(text);
    if (!mask.ok()) return mask.failure();
    masks.push_back(std::move(mask).value());
  }
  return masks;
}

/// The cards that this rank may choose from; none when ranks compute on the CPU.
std::vector<std::string> visible_gpus(comm::ProcessGroup& world, const JoinOptions& options) {
  if (options.gpus == topology::GpuUse::none) return {};
  return agree(world, options.visible_gpus);
}

/// This node with these cards alone. Where its PCI devices cannot be seen (some virtual machines
/// and containers hide them), it is a node without cards, which are then dealt out by number.
base::Result<topology::Machine> machine_with(const std::vector<std::string>& visible) {
  auto machine = topology::discover();
  if (!machine.ok() || visible.empty()) return machine;
  auto narrowed = topology::with_gpus(*machine, visible);
  if (narrowed.ok()) return narrowed;
  base::log::local::warning("runtime", "{} (cards are dealt out by number, wherever they are)",
                            narrowed.failure().text);
  machine->gpus.clear();
  return machine;
}

std::string gpu_of(const topology::PlacementSlot& place,
                   const base::Result<topology::Machine>& machine,
                   const std::vector<std::string>& visible, base::LocalRank rank) {
  if (visible.empty()) return {};
  if (place.gpu < 0) return visible[rank.index() % visible.size()];
  return machine->gpus[static_cast<std::size_t>(place.gpu)].pci.bus_id;
}

base::Result<topology::Placement> plan_for(const base::Result<topology::Machine>& machine,
                                           const base::Result<std::vector<topology::CpuSet>>& masks,
                                           topology::GpuUse gpus) {
  if (!machine.ok()) return machine.failure();
  if (!masks.ok()) return masks.failure();
  return topology::place_ranks(*machine, *masks, gpus);
}

}  // namespace

base::Result<int> thread_count(const base::Environment& environment, int bound) {
  const auto text = environment.get("OMP_NUM_THREADS");
  if (!text || text->empty()) return bound;
  int threads = 0;
  const auto* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, threads);
  const bool ends = parsed.ptr == end || *parsed.ptr == ',';
  if (parsed.ec != std::errc{} || !ends || threads < 1 || threads > thread_limit) {
    return base::usage_failure(base::format(
        "OMP_NUM_THREADS={} is no number of threads from 1 to {}; unset it to use as many as each "
        "rank has cores",
        *text, thread_limit));
  }
  return threads;
}

Binding bind_ranks(comm::MpiRuntime& mpi, comm::ProcessGroup& world, const JoinOptions& options,
                   const base::Environment& environment) {
  const auto node =
      mpi.make_group("node", mpi.node_ranks(), {options.backend, options.timeout_seconds});
  const auto visible = visible_gpus(world, options);
  const auto machine = machine_with(visible);
  const auto masks = neighbour_masks(*node, machine.ok() ? machine->allowed : topology::CpuSet{});
  const auto plan = agree(world, plan_for(machine, masks, options.gpus));
  const auto& place = plan.slots[mpi.local_rank().index()];
  const auto& slot = place.cpus;
  const auto gpu = gpu_of(place, machine, visible, mpi.local_rank());
  const auto cards = machine.ok() ? rdma_cards(*machine) : std::vector<std::string>{};
  const bool binds = options.binding == BindingRule::automatic;
  agree(world, binds ? topology::apply(slot) : base::Status{});
  const int threads =
      agree(world, thread_count(environment, static_cast<int>(slot.compute_pus.size())));
  if (mpi.local_rank().value() == 0) {
    for (const auto& warning : plan.warnings) {
      base::log::local::warning("runtime", "{}: {}", mpi.node_name(), warning);
    }
  }
  if (!binds) {
    const auto cpus = machine.ok() ? machine->allowed.text() : std::string{};
    return {threads, cpus, "not bound, as run.binding = none asks", gpu, cards};
  }
  base::log::local::debug("runtime", "bound to CPUs {} ({}), {} threads", slot.pus.text(),
                          slot.reason, threads);
  return {threads, slot.pus.text(), slot.reason, gpu, cards};
}

}  // namespace trireme::runtime
