#include "trireme/layout/arrange.hpp"

#include "mesh_choices.hpp"

#include <algorithm>

namespace trireme::layout {

base::Result<Mesh> arrange(const Degrees& degrees, int world_size, const Suits& suits) {
  // Left open, data parallelism takes what divides evenly; the failure explains what does not.
  const auto others = std::max<std::int64_t>(1, std::int64_t{degrees.tensor} * degrees.pipeline);
  const auto rest = static_cast<int>(std::max<std::int64_t>(1, world_size / others));
  std::vector<AxisExtent> axes{{Axis::pipeline, degrees.pipeline},
                               {Axis::data, degrees.data.value_or(rest)},
                               {Axis::tensor, degrees.tensor}};
  auto mesh = Mesh::create(axes, world_size);
  if (mesh.ok() || !suits) return mesh;
  const bool positive =
      std::all_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.degree > 0; });
  if (!is_world_size(world_size) || !positive) return mesh;
  return wrong_product(std::move(axes), world_size, suits);
}

}  // namespace trireme::layout
