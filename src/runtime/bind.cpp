// SPDX-License-Identifier: Apache-2.0
#include "bind.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/runtime/library_environment.hpp"
#include "trireme/runtime/thread_variables.hpp"
#include "trireme/topology/binding.hpp"
#include "trireme/topology/discover.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

namespace trireme::runtime {
namespace {

constexpr int thread_limit = 4096;

/// CPU masks of the node's ranks as they are now, by local rank.
base::Result<std::vector<topology::CpuSet>> neighbour_masks(comm::ProcessGroup& node,
                                                            const topology::CpuSet& own) {
  std::vector<topology::CpuSet> masks;
  for (const auto& text : comm::all_gather_bytes(node, own.text())) {
    auto mask = topology::CpuSet::parse(text);
    if (!mask.ok()) return mask.failure();
    masks.push_back(std::move(mask).value());
  }
  return masks;
}

/// The GPUs that this rank may choose from; none when ranks compute on the CPU.
std::vector<std::string> visible_gpus(comm::ProcessGroup& world, const JoinOptions& options) {
  if (options.gpus == topology::GpuUse::none) return {};
  return comm::agree(world, options.visible_gpus);
}

/// This node with only these GPUs. Where its PCI devices cannot be seen (some virtual machines and
/// containers hide them), it is a node without GPUs, which are then assigned by number.
base::Result<topology::Machine> machine_with(const std::vector<std::string>& visible) {
  auto machine = topology::discover();
  if (!machine.ok() || visible.empty()) return machine;
  auto narrowed = topology::with_gpus(*machine, visible);
  if (narrowed.ok()) return narrowed;
  base::log::local::warning("runtime", "{} (GPUs are dealt out by number, wherever they are)",
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

/// Numbers of the NUMA nodes with cores of this mask.
std::vector<int> numa_nodes_of(const base::Result<topology::Machine>& machine,
                               const topology::CpuSet& pus) {
  std::vector<int> numbers;
  if (!machine.ok()) return numbers;
  for (const auto& node : machine->numa_nodes) {
    if (node.pus.intersects(pus)) numbers.push_back(node.os_index);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Value of a variable in small letters, without the blanks around it that OpenMP allows.
std::string word_in(const base::Environment& environment, const char* variable) {
  const auto value = environment.get(variable).value_or("");
  std::string text(base::trimmed(value));
  for (auto& letter : text) letter = letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter;
  return text;
}

/// Spinning time of a number with a unit k, m, g or t (thousands), or "infinite"; GNU's library
/// takes a hundred thousand spins for a millisecond.
std::optional<std::chrono::microseconds> spin_time(const std::string& text) {
  constexpr std::uint64_t spins_per_microsecond = 100;
  constexpr auto longest = static_cast<std::uint64_t>(device::always_spins.spin.count());
  if (text == "infinite" || text == "infinity") return device::always_spins.spin;
  std::uint64_t spins = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, spins);
  if (parsed.ec != std::errc{}) return std::nullopt;
  std::size_t thousands = 0;
  if (parsed.ptr != end) {
    thousands = std::string_view("kmgt").find(*parsed.ptr) + 1;
    if (thousands == 0 || parsed.ptr + 1 != end) return std::nullopt;
  }
  spins = std::min(spins, longest);
  for (; thousands > 0; --thousands) spins = std::min(spins * 1000, longest);
  return std::chrono::microseconds(spins / spins_per_microsecond);
}

}  // namespace

base::Result<int> thread_count(const base::Environment& environment, int bound) {
  const auto text = environment.get("OMP_NUM_THREADS").value_or("");
  // OpenMP allows blanks around each number of the list.
  const auto list = base::trimmed(text);
  if (list.empty()) return bound;
  const auto first = base::trimmed(list.substr(0, list.find(',')));
  const int threads = base::number_in<int>(first).value_or(0);
  if (threads < 1 || threads > thread_limit) {
    return base::usage_failure(base::format(
        "OMP_NUM_THREADS={} is no number of threads from 1 to {}; unset it to use as many as each "
        "rank has cores",
        text, thread_limit));
  }
  return threads;
}

base::Result<device::ThreadWait> thread_wait(const base::Environment& environment) {
  const auto spins = word_in(environment, "GOMP_SPINCOUNT");
  if (!spins.empty()) {
    const auto spin = spin_time(spins);
    if (spin) return device::spins_for(*spin);
    return base::usage_failure(base::format(
        "GOMP_SPINCOUNT={} is no number of spins (such as 0, 30000, 2k or infinite); unset it to "
        "let compute threads spin briefly",
        spins));
  }
  const auto policy = word_in(environment, "OMP_WAIT_POLICY");
  if (policy.empty()) return device::ThreadWait{};
  if (policy == "active") return device::always_spins;
  if (policy == "passive") return device::never_spins;
  return base::usage_failure(
      base::format("OMP_WAIT_POLICY={} is neither active nor passive; unset it to let compute "
                   "threads spin briefly",
                   policy));
}

base::Status check_thread_variables(const base::Environment& environment) {
  const auto threads = thread_count(environment, 1);
  if (!threads.ok()) return threads.failure();
  const auto wait = thread_wait(environment);
  return wait.ok() ? base::Status{} : wait.failure();
}

Binding bind_ranks(comm::MpiRuntime& mpi, comm::ProcessGroup& world, const JoinOptions& options,
                   const base::Environment& environment) {
  const auto node = mpi.make_group(
      "node", mpi.node_ranks(), {options.backend, options.timeout_seconds, comm::Stores::ordinary});
  const auto visible = visible_gpus(world, options);
  const auto machine = machine_with(visible);
  const auto masks = neighbour_masks(*node, machine.ok() ? machine->allowed : topology::CpuSet{});
  const auto plan = comm::agree(world, plan_for(machine, masks, options.gpus));
  const auto& place = plan.slots[mpi.local_rank().index()];
  const auto& slot = place.cpus;
  const auto gpu = gpu_of(place, machine, visible, mpi.local_rank());
  const auto nics = machine.ok() ? rdma_nics(*machine) : std::vector<std::string>{};
  const bool binds = options.binding == BindingRule::automatic;
  comm::agree(world, binds ? topology::apply(slot) : base::Status{});
  const int threads =
      comm::agree(world, thread_count(environment, static_cast<int>(slot.compute_pus.size())));
  const auto wait = comm::agree(world, thread_wait(environment));
  if (mpi.local_rank().value() == 0) {
    for (const auto& warning : plan.warnings) {
      base::log::local::warning("runtime", "{}: {}", mpi.node_name(), warning);
    }
  }
  if (!binds) {
    const auto cpus = machine.ok() ? machine->allowed : topology::CpuSet{};
    return {threads,
            wait,
            cpus.text(),
            numa_nodes_of(machine, cpus),
            "not bound, as run.binding = none asks",
            gpu,
            nics};
  }
  base::log::local::debug("runtime", "bound to CPUs {} ({}), {} threads", slot.pus.text(),
                          slot.reason, threads);
  return {threads, wait, slot.pus.text(), numa_nodes_of(machine, slot.pus), slot.reason, gpu, nics};
}

}  // namespace trireme::runtime
