// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/discover.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "hwloc_topology.hpp"
#include "read.hpp"
#include "xml_check.hpp"

namespace trireme::topology {
Machine read_machine(hwloc_topology_t topology) {
  Machine machine;
  read_processors(topology, machine);
  read_devices(topology, machine);
  return machine;
}

base::Result<Machine> discover() {
  const auto topology = load_this_machine(Detail::everything);
  if (!topology.ok()) return topology.failure();
  auto machine = read_machine(topology->get());
  // hwloc's own environment variables may have selected another machine.
  if (hwloc_topology_is_thissystem(topology->get()) != 0) {
    const auto mask = make_bitmap();
    if (hwloc_get_cpubind(topology->get(), mask.get(), HWLOC_CPUBIND_PROCESS) == 0) {
      machine.allowed = machine.allowed.intersected(pus_in(machine, mask.get()));
    }
  }
  return machine;
}

base::Result<Machine> from_xml_text(std::string_view xml, std::string_view source) {
  if (auto status = check_xml(xml, source); !status.ok()) return status.failure();
  if (auto status = try_in_child(xml, source); !status.ok()) return status.failure();
  const auto topology = load_xml(xml, source);
  if (!topology.ok()) return topology.failure();
  return read_machine(topology->get());
}

base::Result<Machine> from_xml(const std::filesystem::path& path) {
  auto text = base::read_text_file(path, base::ExitCode::topology, max_xml_bytes);
  if (!text.ok()) return text.failure();
  return from_xml_text(*text, path.string());
}

}  // namespace trireme::topology
