// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/layout/mesh.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::record {

/// Where a rank computes.
struct RankPlace {
  std::string node;
  /// Numbers of the NUMA nodes of its cores, ascending; empty where they are not known.
  std::vector<int> numa_nodes;
  /// "0-3,8": its hardware threads.
  std::string cpus;
  int threads = 1;
  /// PCI bus id; empty without a GPU.
  std::string gpu;

  bool operator==(const RankPlace&) const = default;
};

/// Where all ranks of a start compute: RUN/placement.json (docs/run-directory.md).
struct RunPlacement {
  layout::Mesh mesh = layout::Mesh::of(1, 1, 1);
  std::vector<RankPlace> ranks;  // by rank
};

/// {"numa_nodes", "cpus", "threads", "gpu"}: the place on its node.
base::Json to_json(const RankPlace& place);
/// Reads it as untrusted input: what is no such value is not known.
RankPlace place_of(const base::Json& json, const std::string& node);

/// Nodes whose ranks sit alike share one description, so that the text grows with the nodes:
/// {"ranks", "axes": [{"axis", "degree"}], "shapes": [[{"numa_nodes", "cpus", "threads", "gpu"}]],
/// "nodes": [{"name", "shape", "ranks": [[first, last], ..]}]}. Entries of a shape are in the order
/// of the node's ranks.
base::Json to_json(const RunPlacement& placement);
/// Reads it as untrusted input (usage).
base::Result<RunPlacement> parse_placement(const base::Json& json);

/// RUN/placement.json.
std::filesystem::path placement_of_run(const std::filesystem::path& run);

}  // namespace trireme::record
