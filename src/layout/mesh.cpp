// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/mesh.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include "mesh_choices.hpp"
#include "quantities.hpp"

#include <algorithm>

namespace trireme::layout {

const char* short_name(Axis axis) {
  return row_of(axis).short_name;
}

base::Result<Mesh> Mesh::create(std::vector<AxisExtent> axes, int world_size) {
  if (world_size < 1) {
    return base::Failure{base::ExitCode::launch,
                         base::format("world size {} is below 1 (a mesh needs ranks to arrange); "
                                      "start at least one rank",
                                      world_size)};
  }
  if (world_size > max_world_size) {
    return base::Failure{base::ExitCode::launch,
                         base::format("world size {} is above {} (no machine has so many devices); "
                                      "start fewer ranks",
                                      world_size, max_world_size)};
  }
  for (std::size_t at = 0; at < axes.size(); ++at) {
    if (axes[at].degree < 1) {
      return base::usage_failure(base::format("{} = {} is below 1 (a degree counts ranks); try {}",
                                              row_of(axes[at].axis).degree.key, axes[at].degree,
                                              base::join(base::divisors(world_size), ", ")));
    }
    for (std::size_t before = 0; before < at; ++before) {
      if (axes[before].axis == axes[at].axis) {
        return base::usage_failure(base::format(
            "axis {} stands twice in the mesh (a rank has one coordinate on each axis); name each "
            "axis once",
            short_name(axes[at].axis)));
      }
    }
  }
  if (saturated_product(axes) != world_size) return wrong_product(std::move(axes), world_size, {});
  return Mesh(std::move(axes), world_size);
}

Mesh Mesh::of(int pipeline, int data, int tensor, int context) {
  TRIREME_EXPECT(pipeline > 0 && data > 0 && tensor > 0 && context > 0, "degrees are positive");
  std::vector<AxisExtent> axes = {{Axis::pipeline, pipeline}, {Axis::data, data}};
  if (context > 1) axes.push_back({Axis::context, context});
  axes.push_back({Axis::tensor, tensor});
  const std::int64_t world_size = saturated_product(axes);
  TRIREME_EXPECT(world_size < too_many_ranks, "ranks are counted in an int");
  return Mesh(std::move(axes), static_cast<int>(world_size));
}

int Mesh::degree(Axis axis) const {
  for (const AxisExtent& extent : axes_) {
    if (extent.axis == axis) return extent.degree;
  }
  return 1;
}

int Mesh::degree(std::span<const Axis> axes) const {
  int degree = 1;
  for (const Axis axis : axes) degree *= this->degree(axis);
  return degree;
}

int Mesh::stride(Axis axis) const {
  int stride = 1;
  for (auto extent = axes_.rbegin(); extent != axes_.rend(); ++extent) {
    if (extent->axis == axis) return stride;
    stride *= extent->degree;
  }
  return 0;
}

int Mesh::coordinate(Axis axis, base::Rank rank) const {
  TRIREME_EXPECT(rank.value() >= 0 && rank.value() < world_size_, "a rank of this mesh");
  const int step = stride(axis);
  return step == 0 ? 0 : rank.value() / step % degree(axis);
}

int Mesh::coordinate(std::span<const Axis> axes, base::Rank rank) const {
  int coordinate = 0;
  // Outermost axis first, as the members of a group ascend.
  for (const AxisExtent& extent : axes_) {
    if (std::find(axes.begin(), axes.end(), extent.axis) == axes.end()) continue;
    coordinate = coordinate * extent.degree + this->coordinate(extent.axis, rank);
  }
  return coordinate;
}

base::Rank Mesh::moved(base::Rank rank, Axis axis, int coordinate) const {
  TRIREME_EXPECT(coordinate >= 0 && coordinate < degree(axis), "a coordinate of this axis");
  return base::Rank(rank.value() + (coordinate - this->coordinate(axis, rank)) * stride(axis));
}

std::vector<base::Rank> Mesh::group(std::span<const Axis> axes, base::Rank member) const {
  base::Rank origin = member;
  for (const Axis axis : axes) origin = moved(origin, axis, 0);
  std::vector<base::Rank> ranks = {origin};
  // Outermost axis first, so that appending keeps the ranks ascending.
  for (const AxisExtent& extent : axes_) {
    if (std::find(axes.begin(), axes.end(), extent.axis) == axes.end()) continue;
    std::vector<base::Rank> wider;
    wider.reserve(ranks.size() * static_cast<std::size_t>(extent.degree));
    for (const base::Rank rank : ranks) {
      for (int at = 0; at < extent.degree; ++at) wider.push_back(moved(rank, extent.axis, at));
    }
    ranks = std::move(wider);
  }
  return ranks;
}

std::vector<base::Rank> Mesh::group(Axis axis, base::Rank member) const {
  return group(std::span<const Axis>(&axis, 1), member);
}

std::string Mesh::text() const {
  std::vector<std::string> parts;
  for (const AxisExtent& extent : axes_) {
    parts.push_back(base::format("{}{}", short_name(extent.axis), extent.degree));
  }
  return parts.empty() ? "1 rank" : base::format("{}", base::join(parts, " x "));
}

}  // namespace trireme::layout
