// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace trireme::tests {
namespace {

using base::format;

/// hwloc's text form of a bit set: 32-bit words, highest first.
std::string bitmap(const std::set<int>& bits) {
  const int words = bits.empty() ? 1 : *bits.rbegin() / 32 + 1;
  std::string text;
  for (int word = words - 1; word >= 0; --word) {
    std::uint32_t value = 0;
    for (int bit = 0; bit < 32; ++bit) {
      if (bits.contains(word * 32 + bit)) value |= std::uint32_t{1} << bit;
    }
    text += format("{}0x{:08x}", text.empty() ? "" : ",", value);
  }
  return text;
}

std::set<int> up_to(int count) {
  std::set<int> numbers;
  for (int number = 0; number < count; ++number) numbers.insert(number);
  return numbers;
}

/// "0008:[00-03]".
std::string bridge_range(const PciSpec& bridge) {
  const auto colon = bridge.buses.find(':');
  if (colon == std::string::npos) return format("0000:[{}]", bridge.buses);
  return format("{}:[{}]", bridge.buses.substr(0, colon), bridge.buses.substr(colon + 1));
}

/// Writes elements; every object gets a number of its own, as hwloc wants.
class Writer {
 public:
  explicit Writer(const MachineSpec& spec);
  std::string take();

 private:
  void open(const std::string& attributes) {
    text_ += format("<object {} gp_index=\"{}\">\n", attributes, next_number_++);
  }
  void close() { text_ += "</object>\n"; }
  std::string sets(const std::set<int>& pus, const std::set<int>& nodes) const {
    return format("cpuset=\"{0}\" complete_cpuset=\"{0}\" nodeset=\"{1}\" complete_nodeset=\"{1}\"",
                  bitmap(pus), bitmap(nodes));
  }
  int numa_count() const { return std::max(1, spec_.packages * spec_.numa_per_package); }
  int first_core(int cache) const { return cache * spec_.cores_per_l3; }
  int core_count() const {
    return spec_.packages * std::max(1, spec_.numa_per_package) * spec_.l3_per_numa *
               spec_.cores_per_l3 +
           spec_.efficiency_cores;
  }
  int full_core_count() const { return core_count() - spec_.efficiency_cores; }
  std::set<int> core_pus(int core) const;
  std::set<int> cache_cores(int cache) const;
  std::set<int> pus_of(const std::set<int>& cores) const;
  std::set<int> node_cores(int node) const;

  void write_core(int core, const std::set<int>& nodes);
  void write_cache(int cache, const std::set<int>& nodes);
  void write_node(int node);
  void write_memory(int node, const std::set<int>& cores);
  void write_package(int package);
  void write_host_bridges(int node);
  void write_pci(const PciSpec& device, int depth);
  void write_kinds();
  void write_distances();

  MachineSpec spec_;
  std::string text_;
  int next_number_ = 1;
};

std::set<int> Writer::core_pus(int core) const {
  const int full = full_core_count();
  if (core >= full) return {full * spec_.threads_per_core + core - full};
  std::set<int> pus;
  for (int thread = 0; thread < spec_.threads_per_core; ++thread) {
    pus.insert(spec_.numbering == PuNumbering::siblings_last
                   ? thread * full + core
                   : core * spec_.threads_per_core + thread);
  }
  return pus;
}

std::set<int> Writer::cache_cores(int cache) const {
  std::set<int> cores;
  const int end = first_core(cache + 1);
  const bool last = end == full_core_count();
  for (int core = first_core(cache); core < (last ? core_count() : end); ++core) cores.insert(core);
  return cores;
}

std::set<int> Writer::pus_of(const std::set<int>& cores) const {
  std::set<int> pus;
  for (const int core : cores) pus.merge(core_pus(core));
  return pus;
}

std::set<int> Writer::node_cores(int node) const {
  std::set<int> cores;
  if (spec_.numa_per_package == 0) return up_to(core_count());
  for (int cache = 0; cache < spec_.l3_per_numa; ++cache) {
    cores.merge(cache_cores(node * spec_.l3_per_numa + cache));
  }
  return cores;
}

void Writer::write_core(int core, const std::set<int>& nodes) {
  const auto pus = core_pus(core);
  open(
      format("type=\"L2Cache\" {} cache_size=\"2097152\" depth=\"2\" cache_linesize=\"64\" "
             "cache_associativity=\"16\" cache_type=\"0\"",
             sets(pus, nodes)));
  open(format("type=\"Core\" os_index=\"{}\" {}", core, sets(pus, nodes)));
  for (const int pu : pus) {
    open(format("type=\"PU\" os_index=\"{}\" {}", pu, sets({pu}, nodes)));
    close();
  }
  close();
  close();
}

void Writer::write_cache(int cache, const std::set<int>& nodes) {
  const auto cores = cache_cores(cache);
  open(
      format("type=\"L3Cache\" {} cache_size=\"33554432\" depth=\"3\" cache_linesize=\"64\" "
             "cache_associativity=\"16\" cache_type=\"0\"",
             sets(pus_of(cores), nodes)));
  for (const int core : cores) write_core(core, nodes);
  close();
}

void Writer::write_memory(int node, const std::set<int>& cores) {
  open(format("type=\"NUMANode\" os_index=\"{}\" {} local_memory=\"{}\"", node,
              sets(pus_of(cores), {node}), spec_.memory_per_numa_bytes));
  close();
}

void Writer::write_node(int node) {
  const auto cores = node_cores(node);
  const bool grouped = spec_.numa_per_package > 1;
  if (grouped) {
    open(format("type=\"Group\" {} kind=\"1001\" subkind=\"0\"", sets(pus_of(cores), {node})));
  }
  write_memory(node, cores);
  for (int cache = 0; cache < spec_.l3_per_numa; ++cache) {
    write_cache(node * spec_.l3_per_numa + cache, {node});
  }
  write_host_bridges(node);
  if (grouped) close();
}

void Writer::write_package(int package) {
  std::set<int> nodes{0};
  std::set<int> cores;
  const int caches = std::max(1, spec_.numa_per_package) * spec_.l3_per_numa;
  for (int cache = 0; cache < caches; ++cache) cores.merge(cache_cores(package * caches + cache));
  if (spec_.numa_per_package > 0) {
    nodes.clear();
    for (int node = 0; node < spec_.numa_per_package; ++node) {
      nodes.insert(package * spec_.numa_per_package + node);
    }
  }
  open(format("type=\"Package\" os_index=\"{}\" {}", package, sets(pus_of(cores), nodes)));
  if (spec_.numa_per_package > 0) {
    for (const int node : nodes) write_node(node);
  } else {
    for (int cache = 0; cache < caches; ++cache) write_cache(package * caches + cache, nodes);
  }
  close();
}

void Writer::write_host_bridges(int node) {
  for (const auto& bridge : spec_.host_bridges) {
    if (bridge.numa_node == node) write_pci(bridge.root, 0);
  }
}

void Writer::write_pci(const PciSpec& device, int depth) {
  switch (device.kind) {
    case PciSpec::Kind::bridge:
      if (device.bus_id.empty()) {
        open(format("type=\"Bridge\" bridge_type=\"0-1\" depth=\"{}\" bridge_pci=\"{}\"", depth,
                    bridge_range(device)));
      } else {
        open(
            format("type=\"Bridge\" bridge_type=\"1-1\" depth=\"{}\" bridge_pci=\"{}\" "
                   "pci_busid=\"{}\" pci_type=\"0604 [1000:c030] [0000:0000] 00\" "
                   "pci_link_speed=\"63.0\"",
                   depth, bridge_range(device), device.bus_id));
      }
      break;
    case PciSpec::Kind::gpu:
    case PciSpec::Kind::graphics:
      open(
          format("type=\"PCIDev\" pci_busid=\"{}\" pci_type=\"{} [{}] [0000:0000] a1\" "
                 "pci_link_speed=\"63.0\"",
                 device.bus_id, device.kind == PciSpec::Kind::gpu ? "0302" : "0300", device.ids));
      break;
    case PciSpec::Kind::nic: {
      const bool verbs = device.system_name.starts_with("mlx");
      open(
          format("type=\"PCIDev\" pci_busid=\"{}\" pci_type=\"{} [{}] [0000:0000] 00\" "
                 "pci_link_speed=\"63.0\"",
                 device.bus_id, verbs ? "0207" : "0200", device.ids));
      open(format("type=\"OSDev\" name=\"{}\" osdev_type=\"{}\"", device.system_name,
                  verbs ? 3 : 2));
      if (!device.port_state.empty()) {
        text_ += format("<info name=\"Port1State\" value=\"{}\"/>\n", device.port_state);
      }
      close();
      break;
    }
  }
  for (const auto& child : device.children) write_pci(child, depth + 1);
  close();
}

void Writer::write_kinds() {
  if (spec_.efficiency_cores == 0) return;
  const auto full = pus_of(up_to(full_core_count()));
  std::set<int> slow;
  for (int core = full_core_count(); core < core_count(); ++core) slow.merge(core_pus(core));
  text_ += format(
      "<cpukind cpuset=\"{}\" forced_efficiency=\"0\">"
      "<info name=\"CoreType\" value=\"IntelAtom\"/></cpukind>\n",
      bitmap(slow));
  text_ += format(
      "<cpukind cpuset=\"{}\" forced_efficiency=\"1\">"
      "<info name=\"CoreType\" value=\"IntelCore\"/></cpukind>\n",
      bitmap(full));
}

void Writer::write_distances() {
  const int count = numa_count();
  if (count < 2) return;
  std::string indices;
  std::string values;
  for (int from = 0; from < count; ++from) {
    indices += format("{} ", from);
    for (int to = 0; to < count; ++to) {
      const bool together = from / spec_.numa_per_package == to / spec_.numa_per_package;
      values += format("{} ", from == to ? 10 : together ? 12 : 32);
    }
  }
  text_ += format(
      "<distances2 type=\"NUMANode\" nbobjs=\"{}\" kind=\"5\" name=\"NUMALatency\" "
      "indexing=\"os\">\n<indexes length=\"{}\">{}</indexes>\n"
      "<u64values length=\"{}\">{}</u64values>\n</distances2>\n",
      count, indices.size(), indices, values.size(), values);
}

Writer::Writer(const MachineSpec& spec) : spec_(spec) {
  const auto pus = pus_of(up_to(core_count()));
  auto allowed = pus;
  for (const int pu : spec_.forbidden_pus) allowed.erase(pu);
  const auto nodes = up_to(numa_count() + spec_.gpu_memories);
  text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology version=\"2.0\">\n";
  open(format("type=\"Machine\" os_index=\"0\" {} allowed_cpuset=\"{}\" allowed_nodeset=\"{}\"",
              sets(pus, nodes), bitmap(allowed), bitmap(nodes)));
  text_ += format("<info name=\"HostName\" value=\"{}\"/>\n", spec_.name);
  if (spec_.numa_per_package == 0) write_memory(0, up_to(core_count()));
  for (int package = 0; package < spec_.packages; ++package) write_package(package);
  if (spec_.numa_per_package == 0) write_host_bridges(0);
  for (int memory = 0; memory < spec_.gpu_memories; ++memory) {
    write_memory(numa_count() + memory, {});
  }
  write_host_bridges(-1);
  close();
  write_distances();
  write_kinds();
  text_ += "</topology>\n";
}

std::string Writer::take() {
  return std::move(text_);
}

}  // namespace

std::string machine_xml(const MachineSpec& spec) {
  return Writer(spec).take();
}

}  // namespace trireme::tests
