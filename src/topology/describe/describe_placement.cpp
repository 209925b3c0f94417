// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/topology/describe.hpp"

#include <algorithm>
#include <array>

namespace trireme::topology {
namespace {

using base::format;
using Row = std::array<std::string, 5>;

const Nic& nic_at(const Machine& machine, int nic) {
  return machine.nics[static_cast<std::size_t>(nic)];
}

std::string nic_names(const Machine& machine, const PlacementSlot& slot) {
  std::vector<std::string> names;
  for (const int nic : slot.nics) names.push_back(name_of(nic_at(machine, nic)));
  return names.empty() ? "-" : format("{}", base::join(names, ","));
}

Row row_of(const Machine& machine, const PlacementSlot& slot) {
  return {
      format("{}", slot.cpus.local_rank),
      slot.gpu < 0
          ? "-"
          : format("{} {}", slot.gpu, machine.gpus[static_cast<std::size_t>(slot.gpu)].pci.bus_id),
      nic_names(machine, slot), format("{}", slot.cpus.compute_pus.size()), slot.cpus.pus.text()};
}

std::string table_text(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    // Numbers to the right, names to the left; nothing behind the last column.
    text += format("{:>{}}  {:<{}}  {:<{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1],
                   row[2], widths[2], row[3], widths[3], row[4]);
  }
  return text;
}

}  // namespace

std::string placement_text(const Machine& machine, const Placement& placement) {
  std::vector<Row> rows{{"local rank", "GPU", "NIC", "threads", "CPUs"}};
  for (const auto& slot : placement.slots) rows.push_back(row_of(machine, slot));
  auto text = table_text(rows);
  for (const auto& slot : placement.slots) {
    text += format("local rank {}\n", slot.cpus.local_rank);
    if (slot.gpu >= 0) text += format("  GPU {}: {}\n", slot.gpu, slot.gpu_reason);
    text += format("  CPUs: {}\n", slot.cpus.reason);
    if (!slot.nics.empty()) text += format("  NIC {}\n", slot.nic_reason);
  }
  for (const auto& note : placement.notes) text += "note: " + note + "\n";
  for (const auto& warning : placement.warnings) text += "warning: " + warning + "\n";
  return text;
}

base::Json to_json(const Machine& machine, const Placement& placement) {
  base::Json json;
  json["slots"] = base::Json::array();
  for (const auto& slot : placement.slots) {
    base::Json entry{{"local_rank", slot.cpus.local_rank}, {"gpu", nullptr},
                     {"nics", base::Json::array()},        {"nic_reason", slot.nic_reason},
                     {"pus", slot.cpus.pus.pus()},         {"compute_pus", slot.cpus.compute_pus},
                     {"numa_nodes", slot.cpus.numa_nodes}, {"shared", slot.cpus.shared},
                     {"reason", slot.cpus.reason}};
    if (slot.gpu >= 0) {
      entry["gpu"] = {{"index", slot.gpu},
                      {"bus_id", machine.gpus[static_cast<std::size_t>(slot.gpu)].pci.bus_id},
                      {"reason", slot.gpu_reason}};
    }
    for (const int nic : slot.nics) {
      entry["nics"].push_back({{"index", nic},
                               {"name", name_of(nic_at(machine, nic))},
                               {"bus_id", nic_at(machine, nic).pci.bus_id}});
    }
    json["slots"].push_back(std::move(entry));
  }
  json["notes"] = placement.notes;
  json["warnings"] = placement.warnings;
  return json;
}

}  // namespace trireme::topology
