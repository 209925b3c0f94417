#include "trireme/layout/mesh.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::layout {
namespace {

const char* configuration_key(Axis axis) {
  switch (axis) {
    case Axis::pipeline:
      return "parallel.pipeline";
    case Axis::data:
      return "parallel.data";
    case Axis::tensor:
      return "parallel.tensor";
  }
  return "parallel.?";
}

/// Position of an axis in messages: the order in which the configuration's keys are documented.
int order_in_messages(Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return 0;
    case Axis::pipeline:
      return 1;
    case Axis::data:
      return 2;
  }
  return 3;
}

constexpr std::int64_t too_many_ranks = std::numeric_limits<int>::max();

/// Larger than any machine; a mistyped world size ends here and not in the allocator.
constexpr int max_world_size = 1 << 24;

/// Product of positive degrees; everything above the range of a rank counts as too_many_ranks.
std::int64_t saturated_product(const std::vector<AxisExtent>& axes) {
  std::int64_t product = 1;
  for (const AxisExtent& extent : axes) {
    product = std::min(product * extent.degree, too_many_ranks);
  }
  return product;
}

/// Every way to write `number` as an ordered product of `count` factors.
void append_factorisations(int number, std::size_t count, std::vector<int>& prefix,
                           std::vector<std::vector<int>>& out) {
  if (count == 1) {
    prefix.push_back(number);
    out.push_back(prefix);
    prefix.pop_back();
    return;
  }
  for (const int factor : base::divisors(number)) {
    prefix.push_back(factor);
    append_factorisations(number / factor, count - 1, prefix, out);
    prefix.pop_back();
  }
}

/// How far two choices of degrees are apart: octaves moved, over all axes. Moving data parallelism
/// is the cheapest for a user (it needs nothing of the model), so it breaks ties.
double distance(const std::vector<AxisExtent>& wanted, const std::vector<int>& degrees) {
  double sum = 0;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    const double octaves =
        std::abs(std::log2(static_cast<double>(degrees[axis]) / wanted[axis].degree));
    sum += wanted[axis].axis == Axis::data ? octaves * 0.999 : octaves;
  }
  return sum;
}

/// Up to three nearest choices whose product is the world size, as text.
std::string nearest_choices(const std::vector<AxisExtent>& axes, int world_size) {
  std::vector<std::vector<int>> choices;
  std::vector<int> prefix;
  append_factorisations(world_size, axes.size(), prefix, choices);
  std::stable_sort(choices.begin(), choices.end(), [&](const auto& a, const auto& b) {
    return distance(axes, a) < distance(axes, b);
  });
  if (choices.size() > 3) choices.resize(3);
  std::vector<std::string> texts;
  for (const auto& choice : choices) {
    texts.push_back(base::format("{}", base::join(choice, " x ")));
  }
  return base::format("{}", base::join(texts, ", "));
}

base::Failure wrong_product(std::vector<AxisExtent> axes, int world_size) {
  if (axes.empty()) {
    return {base::ExitCode::launch,
            base::format("a mesh without axes is not the world size {} (it has a place for one "
                         "rank); name axes, or start 1 rank",
                         world_size)};
  }
  std::stable_sort(axes.begin(), axes.end(), [](const AxisExtent& a, const AxisExtent& b) {
    return order_in_messages(a.axis) < order_in_messages(b.axis);
  });
  std::vector<std::string> keys;
  std::vector<int> degrees;
  for (const AxisExtent& extent : axes) {
    keys.emplace_back(configuration_key(extent.axis));
    degrees.push_back(extent.degree);
  }
  const std::int64_t product = saturated_product(axes);
  const bool startable = product < too_many_ranks;
  return {
      base::ExitCode::launch,
      base::format(
          "{} = {} = {}{} is not the world size {} (every rank has exactly one place "
          "in the mesh); try {}{}",
          base::join(keys, " x "), base::join(degrees, " x "), startable ? "" : "more than ",
          product, world_size, nearest_choices(axes, world_size),
          startable ? base::format(", or start {} rank{}", product, product == 1 ? "" : "s") : "")};
}

}  // namespace

const char* short_name(Axis axis) {
  switch (axis) {
    case Axis::pipeline:
      return "pp";
    case Axis::data:
      return "dp";
    case Axis::tensor:
      return "tp";
  }
  return "?";
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
                                              configuration_key(axes[at].axis), axes[at].degree,
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
  if (saturated_product(axes) != world_size) return wrong_product(std::move(axes), world_size);
  return Mesh(std::move(axes), world_size);
}

Mesh Mesh::of(int pipeline, int data, int tensor) {
  TRIREME_EXPECT(pipeline > 0 && data > 0 && tensor > 0, "degrees are positive");
  std::vector<AxisExtent> axes = {
      {Axis::pipeline, pipeline}, {Axis::data, data}, {Axis::tensor, tensor}};
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
