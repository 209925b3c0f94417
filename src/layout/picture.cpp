// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/picture.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::layout {
namespace {

constexpr int most_shown = 16;

std::vector<base::Rank> all_ranks(const Mesh& mesh, int most) {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < std::min(mesh.world_size(), most); ++rank) ranks.emplace_back(rank);
  return ranks;
}

std::string coordinate_name(Axis axis, int coordinate) {
  return base::format("{} {}", short_name(axis), coordinate);
}

/// The axes that a picture puts in brackets, to the right, and downwards.
struct Arrangement {
  std::vector<Axis> inner;  ///< none or one
  std::vector<Axis> outer;  ///< none or one
  std::vector<Axis> rows;
};

Arrangement arrange(const Mesh& mesh) {
  Arrangement result;
  const auto& axes = mesh.axes();
  if (axes.empty()) return result;
  result.inner = {axes.back().axis};
  if (axes.size() > 1) result.outer = {axes.front().axis};
  for (std::size_t at = 1; at + 1 < axes.size(); ++at) result.rows.push_back(axes[at].axis);
  return result;
}

/// The first `most_shown` members of the group over `axes`, starting at rank 0.
std::vector<base::Rank> shown(const Mesh& mesh, std::span<const Axis> axes) {
  std::vector<base::Rank> ranks = mesh.group(axes, base::Rank(0));
  if (ranks.size() > most_shown) ranks.resize(most_shown);
  return ranks;
}

std::string padded(const std::string& text, std::size_t width) {
  return base::format("{:<{}}", text, width);
}

/// Ends a line of padded columns.
std::string line_of(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string bracket(const Mesh& mesh, std::span<const Axis> inner, base::Rank rank) {
  const auto group = mesh.group(inner, rank);
  return base::format("[{}]", ranks_text(group));
}

std::string left_out(const Mesh& mesh, const Arrangement& arrangement) {
  const auto missing = [&](std::span<const Axis> axes) {
    return static_cast<int>(mesh.group(axes, base::Rank(0)).size()) - most_shown;
  };
  std::string text;
  if (missing(arrangement.outer) > 0) {
    text += base::format("({} more columns)\n", missing(arrangement.outer));
  }
  if (missing(arrangement.rows) > 0) {
    text += base::format("({} more rows)\n", missing(arrangement.rows));
  }
  return text;
}

std::string arrangement_text(const Mesh& mesh) {
  const Arrangement arrangement = arrange(mesh);
  const auto columns = shown(mesh, arrangement.outer);
  const auto rows = shown(mesh, arrangement.rows);
  // Cells first, so that all columns can be as wide as the widest.
  std::size_t width = 0;
  std::vector<std::vector<std::string>> cells;
  for (const base::Rank row : rows) {
    cells.emplace_back();
    for (const base::Rank column : columns) {
      // Row and column ranks differ from rank 0 on separate axes, so that the crossing is their
      // sum.
      const base::Rank crossing(row.value() + column.value());
      cells.back().push_back(bracket(mesh, arrangement.inner, crossing));
      width = std::max(width, cells.back().back().size());
    }
  }
  std::vector<std::string> names;
  std::size_t name_width = 0;
  for (const base::Rank row : rows) {
    std::vector<std::string> parts;
    for (const Axis axis : arrangement.rows) {
      parts.push_back(coordinate_name(axis, mesh.coordinate(axis, row)));
    }
    names.push_back(base::format("{}", base::join(parts, ", ")));
    name_width = std::max(name_width, names.back().size());
  }
  std::string head = padded("", name_width);
  for (const base::Rank column : columns) {
    for (const Axis axis : arrangement.outer) {
      const std::string name = coordinate_name(axis, mesh.coordinate(axis, column));
      width = std::max(width, name.size());
      head += "  " + padded(name, width);
    }
  }
  std::string text = arrangement.outer.empty() ? "" : line_of(head);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::string line = padded(names[row], name_width);
    for (const std::string& cell : cells[row]) line += "  " + padded(cell, width);
    text += line_of(line);
  }
  return text + left_out(mesh, arrangement);
}

std::string table_text(const Mesh& mesh, int rows) {
  std::vector<std::vector<std::string>> lines = {{"rank"}};
  for (const auto& extent : mesh.axes()) lines[0].emplace_back(short_name(extent.axis));
  for (const auto& extent : mesh.axes()) {
    lines[0].push_back(base::format("{} group", short_name(extent.axis)));
  }
  for (const base::Rank rank : all_ranks(mesh, rows)) {
    std::vector<std::string> line = {std::to_string(rank.value())};
    for (const auto& extent : mesh.axes()) {
      line.push_back(std::to_string(mesh.coordinate(extent.axis, rank)));
    }
    for (const auto& extent : mesh.axes()) {
      line.push_back(ranks_text(mesh.group(extent.axis, rank)));
    }
    lines.push_back(std::move(line));
  }
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column) {
      widths[column] = std::max(widths[column], line[column].size());
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string padded_line;
    for (std::size_t column = 0; column < line.size(); ++column) {
      // Numbers to the right, groups to the left.
      const bool number = column <= mesh.axes().size();
      padded_line += number ? base::format("{:>{}}  ", line[column], widths[column])
                            : padded(line[column], widths[column]) + "  ";
    }
    text += line_of(padded_line);
  }
  if (mesh.world_size() > rows) {
    text += base::format("({} more ranks)\n", mesh.world_size() - rows);
  }
  return text;
}

base::Json groups_json(const Mesh& mesh, Axis axis) {
  base::Json groups = base::Json::array();
  for (int value = 0; value < mesh.world_size(); ++value) {
    const base::Rank rank(value);
    if (mesh.coordinate(axis, rank) != 0) continue;  // each group once, at its first rank
    base::Json group = base::Json::array();
    for (const base::Rank member : mesh.group(axis, rank)) group.push_back(member.value());
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string ranks_text(std::span<const base::Rank> ranks) {
  if (ranks.empty()) return "";
  const int first = ranks.front().value();
  const int last = ranks.back().value();
  const auto count = static_cast<int>(ranks.size());
  if (count > 2 && last - first == count - 1) return base::format("{}-{}", first, last);
  std::vector<std::string> parts;
  for (const base::Rank rank : ranks) {
    if (count > 6 && parts.size() == 3) {
      return base::format("{},..,{}", base::join(parts, ","), last);
    }
    parts.push_back(std::to_string(rank.value()));
  }
  return base::format("{}", base::join(parts, ","));
}

std::string mesh_text(const Mesh& mesh, int table_rows) {
  TRIREME_EXPECT(table_rows > 0, "a table has rows");
  std::string text = mesh.text();
  if (!mesh.axes().empty()) {
    text += base::format(": {} rank{}; in brackets one {} group, neighbours in the world",
                         mesh.world_size(), mesh.world_size() == 1 ? "" : "s",
                         short_name(mesh.axes().back().axis));
  }
  return text + "\n\n" + arrangement_text(mesh) + "\n" + table_text(mesh, table_rows);
}

base::Json mesh_json(const Mesh& mesh) {
  base::Json json;
  json["world_size"] = mesh.world_size();
  json["axes"] = base::Json::array();
  for (const auto& extent : mesh.axes()) {
    json["axes"].push_back({{"axis", short_name(extent.axis)}, {"degree", extent.degree}});
  }
  json["ranks"] = base::Json::array();
  for (const base::Rank rank : all_ranks(mesh, mesh.world_size())) {
    base::Json coordinates = base::Json::object();
    for (const auto& extent : mesh.axes()) {
      coordinates[short_name(extent.axis)] = mesh.coordinate(extent.axis, rank);
    }
    json["ranks"].push_back({{"rank", rank.value()}, {"coordinates", std::move(coordinates)}});
  }
  json["groups"] = base::Json::object();
  for (const auto& extent : mesh.axes()) {
    json["groups"][short_name(extent.axis)] = groups_json(mesh, extent.axis);
  }
  return json;
}

base::Json schedule_json(const Schedule& schedule, const Simulation& simulation) {
  base::Json json;
  json["kind"] = name(schedule.kind);
  json["stages"] = schedule.stages;
  json["micro_batches"] = schedule.micro_batches;
  json["virtual_stages"] = schedule.virtual_stages;
  json["makespan"] = simulation.makespan;
  json["bubble_fraction"] = simulation.bubble_fraction;
  json["peak_live_total"] = simulation.peak_live_total;
  json["peak_live"] = simulation.peak_live;
  json["timeline"] = base::Json::array();
  for (const auto& stage : simulation.timeline) {
    base::Json actions = base::Json::array();
    for (const TimedAction& timed : stage) {
      actions.push_back({{"action", name(timed.action.kind)},
                         {"micro_batch", timed.action.micro_batch},
                         {"virtual_stage", timed.action.virtual_stage},
                         {"begin", timed.begin},
                         {"end", timed.end}});
    }
    json["timeline"].push_back(std::move(actions));
  }
  return json;
}

}  // namespace trireme::layout
