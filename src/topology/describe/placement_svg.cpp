// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/topology/describe.hpp"
#include "trireme/topology/nearness.hpp"

#include <algorithm>
#include <map>

namespace trireme::topology {
namespace {

using base::format;

constexpr int column = 132;  // one rank
constexpr int gap = 12;
constexpr int margin = 20;
constexpr int header = 54;  // title
constexpr int node_top = header + 8;
constexpr int rank_top = node_top + 34;
constexpr int rank_height = 62;
constexpr int gpu_top = rank_top + rank_height + 44;
constexpr int gpu_height = 40;
constexpr int nic_top = gpu_top + gpu_height + 34;
constexpr int nic_height = 40;
constexpr int bottom = nic_top + nic_height + 20;

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// Elements of the picture in the order in which they are painted.
class Canvas {
 public:
  void box(const Box& box, std::string_view style) {
    body_ += format(R"(<rect x="{}" y="{}" width="{}" height="{}" rx="6" {}/>)", box.x, box.y,
                    box.width, box.height, style);
    body_ += '\n';
  }
  void line(int x1, int y1, int x2, int y2) {
    body_ += format(R"(<path d="M{} {} L{} {}" stroke="#555" stroke-width="2"/>)", x1, y1, x2, y2);
    body_ += '\n';
  }
  void text(int x, int y, std::string_view style, std::string_view words) {
    body_ += format(R"(<text x="{}" y="{}" {}>)", x, y, style);
    for (const char letter : base::repaired_utf8(words)) {
      if (letter == '<') {
        body_ += "&lt;";
      } else if (letter == '&') {
        body_ += "&amp;";
      } else {
        body_ += letter;
      }
    }
    body_ += "</text>\n";
  }
  std::string picture(int width, int height) const {
    return format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#fff\"/>\n{2}</svg>\n",
        width, height, body_);
  }

 private:
  std::string body_;
};

constexpr std::string_view small = R"(font-size="11" text-anchor="middle" fill="#333")";
constexpr std::string_view bold =
    R"(font-size="13" font-weight="bold" text-anchor="middle" fill="#111")";

std::string node_title(const Machine& machine, const std::vector<int>& nodes) {
  std::vector<int> numbers;
  for (const int node : nodes) {
    numbers.push_back(machine.numa_nodes[static_cast<std::size_t>(node)].os_index);
  }
  std::sort(numbers.begin(), numbers.end());
  return format("NUMA node{} {}", numbers.size() == 1 ? "" : "s", ranges_text(numbers));
}

/// Ranks in the order of their columns: by their nodes, then by number.
std::vector<const PlacementSlot*> in_columns(const Placement& placement) {
  std::vector<const PlacementSlot*> order;
  for (const auto& slot : placement.slots) order.push_back(&slot);
  std::stable_sort(order.begin(), order.end(), [](const auto* one, const auto* other) {
    return one->cpus.numa_nodes < other->cpus.numa_nodes;
  });
  return order;
}

int column_x(std::size_t index) {
  return margin + static_cast<int>(index) * (column + gap);
}

void draw_nodes(Canvas& canvas, const Machine& machine,
                const std::vector<const PlacementSlot*>& order) {
  for (std::size_t begin = 0; begin < order.size();) {
    auto end = begin;
    while (end < order.size() && order[end]->cpus.numa_nodes == order[begin]->cpus.numa_nodes) {
      ++end;
    }
    const int width = static_cast<int>(end - begin) * (column + gap) - gap;
    canvas.box({column_x(begin) - 4, node_top, width + 8, rank_top + rank_height + 8 - node_top},
               R"(fill="#eef3fa" stroke="#8aa4c8")");
    canvas.text(column_x(begin) + width / 2, node_top + 21, bold,
                node_title(machine, order[begin]->cpus.numa_nodes));
    begin = end;
  }
}

void draw_rank(Canvas& canvas, int x, const PlacementSlot& slot) {
  canvas.box({x, rank_top, column, rank_height}, R"(fill="#fff" stroke="#4a6fa5")");
  const int middle = x + column / 2;
  canvas.text(middle, rank_top + 19, bold, format("local rank {}", slot.cpus.local_rank));
  canvas.text(middle, rank_top + 36, small,
              base::counted(std::ssize(slot.cpus.compute_pus), "thread"));
  canvas.text(middle, rank_top + 52, small, "CPUs " + slot.cpus.pus.text());
}

/// Nearness of a rank's GPU to its NIC, in words.
std::string way_text(const Machine& machine, const PlacementSlot& slot) {
  const auto& gpu = machine.gpus[static_cast<std::size_t>(slot.gpu)].pci;
  const auto& nic = machine.nics[static_cast<std::size_t>(slot.nics.front())].pci;
  switch (distance_between(machine, gpu, nic).nearness) {
    case Nearness::same_switch:
      return "switch";
    case Nearness::same_host_bridge:
      return "host bridge";
    case Nearness::same_numa_node:
      return "NUMA node";
    case Nearness::same_package:
      return "package";
    case Nearness::far:
      return "between packages";
  }
  return {};
}

void draw_devices(Canvas& canvas, const Machine& machine, int x, const PlacementSlot& slot) {
  const int middle = x + column / 2;
  int above = rank_top + rank_height;
  if (slot.gpu >= 0) {
    canvas.line(middle, above, middle, gpu_top);
    canvas.box({x, gpu_top, column, gpu_height}, R"(fill="#e4f3e2" stroke="#4b8b3b")");
    canvas.text(middle, gpu_top + 17, bold, format("GPU {}", slot.gpu));
    canvas.text(middle, gpu_top + 33, small,
                machine.gpus[static_cast<std::size_t>(slot.gpu)].pci.bus_id);
    above = gpu_top + gpu_height;
  }
  if (slot.nics.empty()) return;
  canvas.line(middle, above, middle, nic_top);
  if (slot.gpu >= 0) {
    canvas.text(middle + 6, nic_top - 12, R"(font-size="10" fill="#777")", way_text(machine, slot));
  }
  std::vector<std::string> names;
  for (const int nic : slot.nics)
    names.push_back(name_of(machine.nics[static_cast<std::size_t>(nic)]));
  canvas.box({x, nic_top, column, nic_height}, R"(fill="#fdf0dc" stroke="#c7892b")");
  canvas.text(middle, nic_top + 17, bold, format("{}", base::join(names, ", ")));
  canvas.text(middle, nic_top + 33, small,
              name_of(machine.nics[static_cast<std::size_t>(slot.nics.front())].kind));
}

/// The switch that a rank's GPU hangs on together with its neighbour's; -1 for none.
bool share_switch(const Machine& machine, const PlacementSlot& one, const PlacementSlot& other) {
  if (one.gpu < 0 || other.gpu < 0) return false;
  return distance_between(machine, machine.gpus[static_cast<std::size_t>(one.gpu)].pci,
                          machine.gpus[static_cast<std::size_t>(other.gpu)].pci)
             .nearness == Nearness::same_switch;
}

bool nic_on_switch(const Machine& machine, const PlacementSlot& slot) {
  return slot.gpu >= 0 && !slot.nics.empty() && way_text(machine, slot) == "switch";
}

void draw_switches(Canvas& canvas, const Machine& machine,
                   const std::vector<const PlacementSlot*>& order) {
  for (std::size_t begin = 0; begin < order.size();) {
    auto end = begin + 1;
    while (end < order.size() && share_switch(machine, *order[begin], *order[end])) ++end;
    if (end - begin > 1 || nic_on_switch(machine, *order[begin])) {
      const int width = static_cast<int>(end - begin) * (column + gap) - gap;
      const int height =
          (nic_on_switch(machine, *order[begin]) ? nic_top + nic_height : gpu_top + gpu_height) +
          8 - (gpu_top - 22);
      canvas.box({column_x(begin) - 4, gpu_top - 22, width + 8, height},
                 R"(fill="none" stroke="#999" stroke-dasharray="5 4")");
      canvas.text(column_x(begin) + 2, gpu_top - 8, R"(font-size="10" fill="#777")", "PCIe switch");
    }
    begin = end;
  }
}

std::string unused_text(const Machine& machine, const Placement& placement) {
  std::vector<bool> used(machine.nics.size(), false);
  for (const auto& slot : placement.slots) {
    for (const int nic : slot.nics) used[static_cast<std::size_t>(nic)] = true;
  }
  std::vector<std::string> names;
  for (std::size_t nic = 0; nic < used.size(); ++nic) {
    if (used[nic]) continue;
    const auto& device = machine.nics[nic];
    names.push_back(format("{} ({}{})", name_of(device), name_of(device.kind),
                           device.active_port == 0 ? ", down" : ""));
  }
  return names.empty() ? std::string{} : format("not used: {}", base::join(names, ", "));
}

}  // namespace

std::string placement_svg(const Machine& machine, const Placement& placement) {
  const auto order = in_columns(placement);
  Canvas canvas;
  canvas.text(margin, 26, R"(font-size="16" font-weight="bold" fill="#111")",
              format("{}: {} local rank{}", machine.name.empty() ? "machine" : machine.name,
                     order.size(), order.size() == 1 ? "" : "s"));
  canvas.text(margin, 44, R"(font-size="11" fill="#777")", unused_text(machine, placement));
  draw_nodes(canvas, machine, order);
  draw_switches(canvas, machine, order);
  for (std::size_t index = 0; index < order.size(); ++index) {
    draw_rank(canvas, column_x(index), *order[index]);
    draw_devices(canvas, machine, column_x(index), *order[index]);
  }
  return canvas.picture(column_x(order.size()) - gap + margin, bottom);
}

}  // namespace trireme::topology
