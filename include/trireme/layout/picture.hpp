// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/layout/mesh.hpp"
#include "trireme/layout/simulate.hpp"

#include <span>
#include <string>

namespace trireme::layout {

/// Ranks in few letters: "0-3", "0,4,8,12", "0,4,..,60"; ascending ranks.
std::string ranks_text(std::span<const base::Rank> ranks);

/// Picture of a mesh for people: the outermost axis to the right, the innermost in brackets, all
/// others downwards; below it a table of ranks, their coordinates and their groups. The picture
/// shows at most 16 rows and columns, the table at most `table_rows` ranks; both state what they
/// omit.
std::string mesh_text(const Mesh& mesh, int table_rows = 64);

/// {"world_size", "axes": [{"axis", "degree"}], "ranks": [{"rank", "coordinates": {"pp": ..}}],
///  "groups": {"pp": [[ranks of one group], ..], ..}}; axes by their short names.
base::Json mesh_json(const Mesh& mesh);

/// {"kind", "stages", "micro_batches", "virtual_stages", "makespan", "bubble_fraction",
///  "peak_live_total": [stage], "peak_live": [stage][virtual stage],
///  "timeline": [stage][{"action", "micro_batch", "virtual_stage", "begin", "end"}]}.
base::Json schedule_json(const Schedule& schedule, const Simulation& simulation);

}  // namespace trireme::layout
