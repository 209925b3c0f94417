// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/topology/binding.hpp"

#include "hwloc_topology.hpp"

#include <cerrno>
#include <cstring>

namespace trireme::topology {

base::Status apply(const BindingSlot& slot) {
  TRIREME_EXPECT(!slot.pus.empty(), "a slot has hardware threads");
  const auto topology = load_this_machine(Detail::cpus_only);
  if (!topology.ok()) return topology.failure();
  const auto set = make_bitmap();
  for (const int pu : slot.pus.pus()) {
    if (hwloc_bitmap_set(set.get(), static_cast<unsigned>(pu)) != 0) {
      return base::Failure{base::ExitCode::topology, "no memory for a set of CPUs"};
    }
  }
  if (hwloc_set_cpubind(topology->get(), set.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    return base::Failure{
        base::ExitCode::topology,
        base::format("local rank {} cannot be bound to CPUs {} ({}); check the job's cgroup, or "
                     "switch binding off",
                     slot.local_rank, slot.pus.text(), std::strerror(errno))};
  }
  return {};
}

}  // namespace trireme::topology
