// SPDX-License-Identifier: Apache-2.0
// Rates at which ranks exchange messages and write files.
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/measure_disk.hpp"
#include "trireme/comm/measure.hpp"

#include "apps/preflight/measure_machine.hpp"

#include <array>

namespace trireme::apps {
namespace {

using layout::Axis;
using predict::Link;
using predict::Machine;

constexpr std::array<std::size_t, 6> message_bytes{std::size_t{1} << 10, std::size_t{1} << 13,
                                                   std::size_t{1} << 16, std::size_t{1} << 19,
                                                   std::size_t{1} << 21, std::size_t{1} << 23};

/// Messages between neighbours on the axis, all of its groups at once.
void measure_axis(runtime::Cluster& cluster, device::Kernels& kernels, Axis axis, Link& link) {
  std::vector<std::unique_ptr<comm::ProcessGroup>> groups;
  groups.push_back(cluster.groups.take(axis));
  link.messages.clear();
  for (const auto bytes : message_bytes) {
    comm::MeasureOptions options;
    options.collective = comm::Collective::send_receive;
    options.bytes = bytes;
    options.repeats = 10;
    const auto result = comm::measure(*cluster.world, kernels.device(), groups, options).front();
    link.messages.push_back({static_cast<double>(result.bytes), result.fastest_seconds});
  }
  const auto& largest = link.messages.back();
  link.rate = largest.bytes / largest.seconds;
  link.latency = link.messages.front().seconds;
  link.hop = link.latency;
}

void say_measured(Machine& machine, const std::string& section, const std::string& source) {
  for (const auto* name : {"rate", "latency", "hop", "messages"}) {
    machine.sources[section + name] = source;
  }
}

/// Links of a node of cores on which one rank ran: nothing to measure with.
void assume_inside(Machine& machine) {
  constexpr double copies = 3;
  constexpr double poll = 2e-6;
  machine.inside.rate = machine.node.memory_rate / copies;
  machine.inside.latency = poll;
  machine.inside.hop = poll;
  const std::string section = "link.node.";
  machine.sources[section + "rate"] = "assumed: a copy into shared memory and one out of it";
  machine.sources[section + "latency"] = "assumed: two threads that poll; measured with two ranks";
  machine.sources[section + "hop"] = machine.sources[section + "latency"];
}

}  // namespace

void measure_links(runtime::Cluster& cluster, device::Kernels& kernels, Machine& machine) {
  const int local = cluster.mesh.degree(Axis::tensor);
  const int nodes = cluster.mesh.degree(Axis::data);
  const auto source = base::format("measured by trireme preflight: messages of {} on {}",
                                   base::counted(local, "rank"), base::counted(nodes, "node"));
  if (local > 1) {
    measure_axis(cluster, kernels, Axis::tensor, machine.inside);
    say_measured(machine, "link.node.", source);
  } else if (machine.node.computes_on_cores()) {
    assume_inside(machine);
  }
  if (nodes == 1) return;
  measure_axis(cluster, kernels, Axis::data, machine.network);
  say_measured(machine, "link.network.", source);
}

void measure_disk(runtime::Cluster& cluster, const std::filesystem::path& folder,
                  Machine& machine) {
  checkpoint::DiskOptions options;
  options.folder = folder;
  const auto nodes = static_cast<std::uint64_t>(cluster.mpi->node_count());
  options.bytes = (std::uint64_t{64} << 20) * nodes;
  options.accesses = {checkpoint::DiskAccess::buffered};
  options.repeats = 2;
  for (const auto& result : checkpoint::measure_disk(*cluster.world, options)) {
    if (std::string_view(result.operation) != "write") continue;
    machine.node.disk_write = static_cast<double>(result.bytes / nodes) / result.fastest_seconds;
    machine.sources["node.disk_write"] = base::format(
        "measured by trireme preflight: {} written, with fsync", base::bytes_text(result.bytes));
  }
}

}  // namespace trireme::apps
