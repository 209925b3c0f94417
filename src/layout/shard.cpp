// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/layout/box.hpp"

#include <algorithm>

namespace trireme::layout {
namespace {

std::int64_t part_count(const Cut& cut, const Mesh& mesh) {
  return std::min<std::int64_t>(mesh.degree(cut.axis), cut.max_parts);
}

void check_cuts(const TensorSpec& spec) {
  for (std::size_t at = 0; at < spec.cuts.size(); ++at) {
    const Cut& cut = spec.cuts[at];
    TRIREME_EXPECT(cut.dimension >= 0 &&
                       static_cast<std::size_t>(cut.dimension) < spec.shape.size() &&
                       cut.unit > 0 && cut.max_parts > 0,
                   "a cut names a dimension of " + spec.name + ", a unit and a count of parts");
    for (std::size_t before = 0; before < at; ++before) {
      TRIREME_EXPECT(spec.cuts[before].axis != cut.axis, "an axis cuts " + spec.name + " once");
    }
  }
}

}  // namespace

std::int64_t part_index(const Cut& cut, const Mesh& mesh, base::Rank rank) {
  return mesh.coordinate(cut.axis, rank) * part_count(cut, mesh) / mesh.degree(cut.axis);
}

Box shard_box(const TensorSpec& spec, const Mesh& mesh, base::Rank rank) {
  check_cuts(spec);
  Box box = whole(spec.shape);
  for (const Cut& cut : spec.cuts) {
    std::int64_t& offset = box.offset[static_cast<std::size_t>(cut.dimension)];
    std::int64_t& length = box.length[static_cast<std::size_t>(cut.dimension)];
    const std::int64_t parts = part_count(cut, mesh);
    const std::int64_t part = part_index(cut, mesh, rank);
    const std::int64_t units = (length + cut.unit - 1) / cut.unit;
    const std::int64_t begin = std::min(part * units / parts * cut.unit, length);
    const std::int64_t end = std::min((part + 1) * units / parts * cut.unit, length);
    offset += begin;
    length = end - begin;
  }
  return box;
}

int replica_count(const TensorSpec& spec, const Mesh& mesh, Axis axis, base::Rank rank) {
  check_cuts(spec);
  for (const Cut& cut : spec.cuts) {
    if (cut.axis != axis) continue;
    const std::int64_t part = part_index(cut, mesh, rank);
    int count = 0;
    for (const base::Rank other : mesh.group(axis, rank)) {
      if (part_index(cut, mesh, other) == part) ++count;
    }
    return count;
  }
  return mesh.degree(axis);
}

int replica_count(const TensorSpec& spec, const Mesh& mesh, Axis axis) {
  for (const Cut& cut : spec.cuts) {
    TRIREME_EXPECT(
        cut.axis != axis || mesh.degree(axis) % part_count(cut, mesh) == 0,
        "the parts of " + spec.name + " have unequal numbers of replicas; ask with a rank");
  }
  return replica_count(spec, mesh, axis, base::Rank(0));
}

}  // namespace trireme::layout
