// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/run_placement.hpp"

#include "trireme/base/json_text.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace trireme::record {
namespace {

using base::Json;
using layout::Axis;

constexpr std::int64_t most_ranks = std::int64_t{1} << 20;
constexpr std::int64_t most_numa_nodes = std::int64_t{1} << 20;

/// A node and its ranks, in the order of the nodes' lowest ranks.
struct NodeRanks {
  std::string name;
  std::vector<int> ranks;
};

std::vector<NodeRanks> nodes_of(const std::vector<RankPlace>& ranks) {
  std::vector<NodeRanks> nodes;
  std::map<std::string, std::size_t> index;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [found, is_new] = index.emplace(ranks[rank].node, nodes.size());
    if (is_new) nodes.push_back({ranks[rank].node, {}});
    nodes[found->second].ranks.push_back(static_cast<int>(rank));
  }
  return nodes;
}

/// [[first, last], ..] of ascending numbers.
Json ranges_json(const std::vector<int>& numbers) {
  Json ranges = Json::array();
  for (const int number : numbers) {
    if (!ranges.empty() && ranges.back()[1] == number - 1) {
      ranges.back()[1] = number;
    } else {
      ranges.push_back({number, number});
    }
  }
  return ranges;
}

base::Failure broken(const std::string& what) {
  return base::usage_failure("placement.json: " + what);
}

/// -1 of what is no whole number.
std::int64_t whole_number(const Json& value) {
  return value.is_number_integer() ? value.get<std::int64_t>() : -1;
}

std::int64_t whole_number(const Json& object, const char* key) {
  if (!object.is_object()) return -1;
  const auto found = object.find(key);
  return found != object.end() ? whole_number(*found) : -1;
}

std::string text(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : std::string{};
}

const Json& list(const Json& object, const char* key) {
  static const Json nothing = Json::array();
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : nothing;
}

base::Result<layout::Mesh> mesh_of(const Json& json, int world_size) {
  std::vector<layout::AxisExtent> axes;
  for (const auto& each : list(json, "axes")) {
    const auto* const axis = std::find_if(
        std::begin(layout::all_axes), std::end(layout::all_axes),
        [&each](Axis known) { return text(each, "axis") == layout::short_name(known); });
    const auto degree = whole_number(each, "degree");
    if (axis == std::end(layout::all_axes) || degree < 1 || degree > world_size) {
      return broken("an axis is not one of a mesh");
    }
    axes.push_back({*axis, static_cast<int>(degree)});
  }
  return layout::Mesh::create(std::move(axes), world_size);
}

/// Ranks of a node, ascending; nothing if they are not ranks of such a world.
std::optional<std::vector<int>> ranks_of(const Json& node, std::int64_t world_size) {
  std::vector<int> ranks;
  for (const auto& range : list(node, "ranks")) {
    if (!range.is_array() || range.size() != 2) return std::nullopt;
    const auto first = whole_number(range[0]);
    const auto last = whole_number(range[1]);
    if (first < 0 || last < first || last >= world_size) return std::nullopt;
    if (!ranks.empty() && first <= ranks.back()) return std::nullopt;
    for (auto rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace

Json to_json(const RankPlace& place) {
  return {{"numa_nodes", place.numa_nodes},
          {"cpus", place.cpus},
          {"threads", place.threads},
          {"gpu", place.gpu}};
}

RankPlace place_of(const Json& json, const std::string& node) {
  RankPlace place;
  place.node = node;
  place.cpus = text(json, "cpus");
  place.gpu = text(json, "gpu");
  place.threads =
      static_cast<int>(std::clamp<std::int64_t>(whole_number(json, "threads"), 1, 1 << 20));
  for (const auto& number : list(json, "numa_nodes")) {
    const auto index = whole_number(number);
    if (index >= 0 && index < most_numa_nodes) place.numa_nodes.push_back(static_cast<int>(index));
  }
  return place;
}

Json to_json(const RunPlacement& placement) {
  Json json;
  json["ranks"] = placement.ranks.size();
  for (const auto& extent : placement.mesh.axes()) {
    json["axes"].push_back({{"axis", layout::short_name(extent.axis)}, {"degree", extent.degree}});
  }
  json["shapes"] = Json::array();
  json["nodes"] = Json::array();
  std::map<std::string, std::size_t> shapes;
  for (const auto& node : nodes_of(placement.ranks)) {
    Json shape = Json::array();
    for (const int rank : node.ranks) {
      shape.push_back(to_json(placement.ranks[static_cast<std::size_t>(rank)]));
    }
    const auto [found, is_new] = shapes.emplace(base::json_text(shape), shapes.size());
    if (is_new) json["shapes"].push_back(std::move(shape));
    json["nodes"].push_back(
        {{"name", node.name}, {"shape", found->second}, {"ranks", ranges_json(node.ranks)}});
  }
  return json;
}

base::Result<RunPlacement> parse_placement(const Json& json) {
  const auto world_size = whole_number(json, "ranks");
  if (world_size < 1 || world_size > most_ranks) return broken("there is no number of ranks");
  auto mesh = mesh_of(json, static_cast<int>(world_size));
  if (!mesh) return mesh.failure();
  RunPlacement placement{*std::move(mesh), {}};
  placement.ranks.resize(static_cast<std::size_t>(world_size));
  std::vector<bool> is_placed(placement.ranks.size());
  const auto& shapes = list(json, "shapes");
  for (const auto& node : list(json, "nodes")) {
    const auto ranks = ranks_of(node, world_size);
    const auto shape = whole_number(node, "shape");
    const bool is_known = shape >= 0 && shape < static_cast<std::int64_t>(shapes.size());
    static const Json no_slots;
    const auto& slots = is_known ? shapes[static_cast<std::size_t>(shape)] : no_slots;
    if (!ranks || !slots.is_array() || slots.size() != ranks->size()) {
      return broken("a node's ranks and places do not belong together");
    }
    for (std::size_t slot = 0; slot < ranks->size(); ++slot) {
      const auto rank = static_cast<std::size_t>((*ranks)[slot]);
      if (is_placed[rank]) return broken("a rank is on two nodes");
      is_placed[rank] = true;
      placement.ranks[rank] = place_of(slots[slot], text(node, "name"));
    }
  }
  if (std::find(is_placed.begin(), is_placed.end(), false) != is_placed.end()) {
    return broken("some ranks are on no node");
  }
  return placement;
}

std::filesystem::path placement_of_run(const std::filesystem::path& run) {
  return run / "placement.json";
}

}  // namespace trireme::record
