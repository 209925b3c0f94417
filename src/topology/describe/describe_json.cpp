// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/describe.hpp"

namespace trireme::topology {
namespace {

using base::Json;

Json json_of(const PciLocation& location) {
  Json json;
  json["bus_id"] = location.bus_id;
  json["bridge"] = location.bridge;
  json["numa_nodes"] = location.numa_nodes;
  json["name"] = location.name;
  json["vendor_id"] = location.vendor_id;
  json["device_id"] = location.device_id;
  json["link_gigabytes_per_second"] = location.link_gigabytes_per_second;
  return json;
}

Json processors_json(const Machine& machine) {
  Json json;
  json["packages"] = Json::array();
  for (const auto& package : machine.packages) {
    json["packages"].push_back({{"os_index", package.os_index}, {"model", package.model}});
  }
  json["numa_nodes"] = Json::array();
  for (const auto& node : machine.numa_nodes) {
    json["numa_nodes"].push_back({{"os_index", node.os_index},
                                  {"memory_bytes", node.memory_bytes},
                                  {"pus", node.pus.pus()},
                                  {"package", node.package},
                                  {"kind", node.kind},
                                  {"distances", node.distances}});
  }
  json["core_kinds"] = Json::array();
  for (const auto& kind : machine.core_kinds) {
    json["core_kinds"].push_back({{"name", kind.name}, {"efficiency", kind.efficiency}});
  }
  json["cores"] = Json::array();
  for (const auto& core : machine.cores) {
    json["cores"].push_back({{"os_index", core.os_index},
                             {"pus", core.pus.pus()},
                             {"package", core.package},
                             {"numa_node", core.numa_node},
                             {"kind", core.kind}});
  }
  json["caches"] = Json::array();
  for (const auto& cache : machine.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"size_bytes", cache.size_bytes}, {"pus", cache.pus.pus()}});
  }
  return json;
}

}  // namespace

Json to_json(const Machine& machine) {
  Json json;
  json["name"] = machine.name;
  json.update(processors_json(machine));
  json["bridges"] = Json::array();
  for (const auto& bridge : machine.bridges) {
    json["bridges"].push_back(
        {{"parent", bridge.parent}, {"bus_id", bridge.bus_id}, {"name", bridge.name}});
  }
  json["gpus"] = Json::array();
  for (const auto& gpu : machine.gpus) json["gpus"].push_back(json_of(gpu.pci));
  json["nics"] = Json::array();
  for (const auto& nic : machine.nics) {
    auto entry = json_of(nic.pci);
    entry["kind"] = name_of(nic.kind);
    entry["verbs_name"] = nic.verbs_name;
    entry["interface_name"] = nic.interface_name;
    json["nics"].push_back(std::move(entry));
  }
  json["allowed"] = machine.allowed.pus();
  return json;
}

Json to_json(const BindingPlan& plan) {
  Json json;
  json["slots"] = Json::array();
  for (const auto& slot : plan.slots) {
    json["slots"].push_back({{"local_rank", slot.local_rank},
                             {"pus", slot.pus.pus()},
                             {"compute_pus", slot.compute_pus},
                             {"numa_nodes", slot.numa_nodes},
                             {"shared", slot.shared},
                             {"reason", slot.reason}});
  }
  json["notes"] = plan.notes;
  json["warnings"] = plan.warnings;
  return json;
}

}  // namespace trireme::topology
