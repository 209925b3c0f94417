// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/columns.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"
#include "trireme/base/text.hpp"
#include "trireme/topology/describe.hpp"
#include "trireme/topology/nearness.hpp"

#include <algorithm>
#include <map>

namespace trireme::topology {
namespace {

using base::format;

constexpr int least_column = 132;  // one rank
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
/// Letters of a name or a list, of which more is cut.
constexpr std::size_t most_letters = 48;
/// Unused NICs that are named.
constexpr std::size_t most_unused = 8;

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

constexpr base::TextStyle title_style{"title", 16, base::TextAnchor::start, true, "#111"};
constexpr base::TextStyle note_style{"note", 11, base::TextAnchor::start, false, "#777"};
constexpr base::TextStyle bold{"bold", 13, base::TextAnchor::middle, true, "#111"};
constexpr base::TextStyle small{"small", 11, base::TextAnchor::middle, false, "#333"};
constexpr base::TextStyle hint{"hint", 10, base::TextAnchor::start, false, "#777"};

std::string cut(std::string_view words) {
  return base::cut_to(base::printable(words), most_letters);
}

class Canvas {
 public:
  void box(const Box& box, std::string_view style) {
    picture_.add(format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" {}/>\n", box.x,
                        box.y, box.width, box.height, style));
  }
  void line(int x1, int y1, int x2, int y2) {
    picture_.add(
        format("<path d=\"M{} {} L{} {}\" stroke=\"#555\" stroke-width=\"2\"/>\n", x1, y1, x2, y2));
  }
  void text(int x, int y, const base::TextStyle& style, std::string_view words) {
    picture_.text(x, y, style, words);
  }
  std::string document(std::string_view title, int width, int height) const {
    return picture_.document(title, width, height);
  }

 private:
  base::SvgPicture picture_;
};

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

std::string cpus_text(const PlacementSlot& slot) {
  return cut("CPUs " + slot.cpus.pus.text());
}

/// NICs of the same ranks, drawn as one box.
struct NicGroup {
  std::vector<int> nics;
  std::vector<std::size_t> ranks;  ///< indices into the columns' order, ascending
  Box box;
};

std::string names_text(const Machine& machine, const NicGroup& group) {
  std::vector<std::string> names;
  for (const int nic : group.nics) {
    names.push_back(name_of(machine.nics[static_cast<std::size_t>(nic)]));
  }
  return cut(format("{}", base::join(names, ", ")));
}

/// Each used NIC is in one group, whichever ranks share it.
std::vector<NicGroup> nic_groups(const Machine& machine,
                                 const std::vector<const PlacementSlot*>& order) {
  std::map<std::vector<std::size_t>, std::vector<int>> by_ranks;
  for (int nic = 0; nic < std::ssize(machine.nics); ++nic) {
    std::vector<std::size_t> ranks;
    for (std::size_t index = 0; index < order.size(); ++index) {
      const auto& nics = order[index]->nics;
      if (std::find(nics.begin(), nics.end(), nic) != nics.end()) ranks.push_back(index);
    }
    if (!ranks.empty()) by_ranks[ranks].push_back(nic);
  }
  std::vector<NicGroup> groups;
  for (const auto& [ranks, nics] : by_ranks) groups.push_back({nics, ranks, {}});
  return groups;
}

/// Columns of ranks, as wide as their widest text.
struct Columns {
  int width = least_column;

  int x(std::size_t index) const { return margin + static_cast<int>(index) * (width + gap); }
  int middle(std::size_t index) const { return x(index) + width / 2; }
};

Columns columns_of(const Machine& machine, const std::vector<const PlacementSlot*>& order,
                   const std::vector<NicGroup>& groups) {
  double widest = 0;
  const auto look = [&widest](const std::string& words, const base::TextStyle& style) {
    widest = std::max(widest, base::text_width(words, style.size));
  };
  for (const auto* slot : order) {
    look(cpus_text(*slot), small);
    look(node_title(machine, slot->cpus.numa_nodes), bold);
  }
  for (const auto& group : groups) look(names_text(machine, group), bold);
  return {std::max(least_column, static_cast<int>(widest) + gap)};
}

/// Below its ranks, as wide as they are where none but they have NICs there; never over another.
void place_groups(std::vector<NicGroup>& groups, const Columns& columns) {
  int free_x = margin;
  for (auto& group : groups) {
    const auto first = group.ranks.front();
    const auto last = group.ranks.back();
    const bool alone = std::none_of(groups.begin(), groups.end(), [&](const auto& other) {
      return &other != &group && other.ranks.front() <= last && first <= other.ranks.back();
    });
    const int middle = (columns.middle(first) + columns.middle(last)) / 2;
    const int width = alone ? columns.x(last) + columns.width - columns.x(first) : columns.width;
    group.box = {std::max(free_x, middle - width / 2), nic_top, width, nic_height};
    free_x = group.box.x + width + gap;
  }
}

void draw_nodes(Canvas& canvas, const Machine& machine, const Columns& columns,
                const std::vector<const PlacementSlot*>& order) {
  for (std::size_t begin = 0; begin < order.size();) {
    auto end = begin;
    while (end < order.size() && order[end]->cpus.numa_nodes == order[begin]->cpus.numa_nodes) {
      ++end;
    }
    const int width = static_cast<int>(end - begin) * (columns.width + gap) - gap;
    canvas.box({columns.x(begin) - 4, node_top, width + 8, rank_top + rank_height + 8 - node_top},
               R"(fill="#eef3fa" stroke="#8aa4c8")");
    canvas.text(columns.x(begin) + width / 2, node_top + 21, bold,
                node_title(machine, order[begin]->cpus.numa_nodes));
    begin = end;
  }
}

void draw_rank(Canvas& canvas, const Columns& columns, std::size_t index,
               const PlacementSlot& slot) {
  canvas.box({columns.x(index), rank_top, columns.width, rank_height},
             R"(fill="#fff" stroke="#4a6fa5")");
  const int middle = columns.middle(index);
  canvas.text(middle, rank_top + 19, bold, format("local rank {}", slot.cpus.local_rank));
  canvas.text(middle, rank_top + 36, small,
              base::counted(std::ssize(slot.cpus.compute_pus), "thread"));
  canvas.text(middle, rank_top + 52, small, cpus_text(slot));
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

void draw_gpu(Canvas& canvas, const Machine& machine, const Columns& columns, std::size_t index,
              const PlacementSlot& slot) {
  if (slot.gpu < 0) return;
  const int middle = columns.middle(index);
  canvas.line(middle, rank_top + rank_height, middle, gpu_top);
  canvas.box({columns.x(index), gpu_top, columns.width, gpu_height},
             R"(fill="#e4f3e2" stroke="#4b8b3b")");
  canvas.text(middle, gpu_top + 17, bold, format("GPU {}", slot.gpu));
  canvas.text(middle, gpu_top + 33, small,
              machine.gpus[static_cast<std::size_t>(slot.gpu)].pci.bus_id);
  if (!slot.nics.empty()) {
    canvas.text(middle + 6, nic_top - 12, hint, way_text(machine, slot));
  }
}

void draw_nics(Canvas& canvas, const Machine& machine, const Columns& columns,
               const std::vector<const PlacementSlot*>& order, const NicGroup& group) {
  for (const auto index : group.ranks) {
    const int from = order[index]->gpu >= 0 ? gpu_top + gpu_height : rank_top + rank_height;
    const int middle = columns.middle(index);
    canvas.line(middle, from,
                std::clamp(middle, group.box.x + gap, group.box.x + group.box.width - gap),
                nic_top);
  }
  canvas.box(group.box, R"(fill="#fdf0dc" stroke="#c7892b")");
  const int middle = group.box.x + group.box.width / 2;
  canvas.text(middle, nic_top + 17, bold, names_text(machine, group));
  canvas.text(middle, nic_top + 33, small,
              name_of(machine.nics[static_cast<std::size_t>(group.nics.front())].kind));
}

/// Whether both ranks' GPUs hang on one switch.
bool share_switch(const Machine& machine, const PlacementSlot& one, const PlacementSlot& other) {
  if (one.gpu < 0 || other.gpu < 0) return false;
  return distance_between(machine, machine.gpus[static_cast<std::size_t>(one.gpu)].pci,
                          machine.gpus[static_cast<std::size_t>(other.gpu)].pci)
             .nearness == Nearness::same_switch;
}

bool nic_on_switch(const Machine& machine, const PlacementSlot& slot) {
  return slot.gpu >= 0 && !slot.nics.empty() && way_text(machine, slot) == "switch";
}

void draw_switches(Canvas& canvas, const Machine& machine, const Columns& columns,
                   const std::vector<const PlacementSlot*>& order) {
  for (std::size_t begin = 0; begin < order.size();) {
    auto end = begin + 1;
    while (end < order.size() && share_switch(machine, *order[begin], *order[end])) ++end;
    if (end - begin > 1 || nic_on_switch(machine, *order[begin])) {
      const int width = static_cast<int>(end - begin) * (columns.width + gap) - gap;
      const int height =
          (nic_on_switch(machine, *order[begin]) ? nic_top + nic_height : gpu_top + gpu_height) +
          8 - (gpu_top - 22);
      canvas.box({columns.x(begin) - 4, gpu_top - 22, width + 8, height},
                 R"(fill="none" stroke="#999" stroke-dasharray="5 4")");
      canvas.text(columns.x(begin) + 2, gpu_top - 8, hint, "PCIe switch");
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
  std::size_t left_out = 0;
  for (std::size_t nic = 0; nic < used.size(); ++nic) {
    if (used[nic]) continue;
    if (names.size() == most_unused) {
      ++left_out;
      continue;
    }
    const auto& device = machine.nics[nic];
    names.push_back(format("{} ({}{})", name_of(device), name_of(device.kind),
                           device.active_port == 0 ? ", down" : ""));
  }
  if (left_out > 0) names.push_back(format("and {} more", left_out));
  return names.empty() ? std::string{} : format("not used: {}", base::join(names, ", "));
}

}  // namespace

std::string placement_svg(const Machine& machine, const Placement& placement) {
  const auto order = in_columns(placement);
  auto groups = nic_groups(machine, order);
  const auto columns = columns_of(machine, order, groups);
  place_groups(groups, columns);
  const auto title = format("{}: {}", machine.name.empty() ? "machine" : cut(machine.name),
                            base::counted(std::ssize(order), "local rank"));
  Canvas canvas;
  canvas.text(margin, 26, title_style, title);
  canvas.text(margin, 44, note_style, unused_text(machine, placement));
  draw_nodes(canvas, machine, columns, order);
  draw_switches(canvas, machine, columns, order);
  for (std::size_t index = 0; index < order.size(); ++index) {
    draw_rank(canvas, columns, index, *order[index]);
    draw_gpu(canvas, machine, columns, index, *order[index]);
  }
  int right = columns.x(order.size()) - gap;
  for (const auto& group : groups) {
    draw_nics(canvas, machine, columns, order, group);
    right = std::max(right, group.box.x + group.box.width);
  }
  return canvas.document(title, right + margin, bottom);
}

}  // namespace trireme::topology
