// SPDX-License-Identifier: Apache-2.0
#include "mesh_choices.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include "quantities.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::layout {
namespace {

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

/// Distance between two choices of degrees: octaves moved, over all axes. Moving data parallelism
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

bool is_suitable(const std::vector<AxisExtent>& axes, const std::vector<int>& degrees,
                 int world_size, const Suits& suits) {
  if (!suits) return true;
  auto candidate = axes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) candidate[axis].degree = degrees[axis];
  const auto mesh = Mesh::create(std::move(candidate), world_size);
  return mesh.ok() && suits(*mesh);
}

/// Up to three nearest choices whose product is the world size, as text; empty when none is
/// suitable.
std::string nearest_choices(const std::vector<AxisExtent>& axes, int world_size,
                            const Suits& suits) {
  std::vector<std::vector<int>> choices;
  std::vector<int> prefix;
  append_factorisations(world_size, axes.size(), prefix, choices);
  std::stable_sort(choices.begin(), choices.end(), [&](const auto& a, const auto& b) {
    return distance(axes, a) < distance(axes, b);
  });
  std::vector<std::string> texts;
  for (const auto& choice : choices) {
    if (texts.size() == 3) break;
    if (!is_suitable(axes, choice, world_size, suits)) continue;
    texts.push_back(base::format("{}", base::join(choice, " x ")));
  }
  return base::format("{}", base::join(texts, ", "));
}

/// Advice on degrees that do not fill the world.
std::string advice(const std::vector<AxisExtent>& axes, const std::vector<int>& degrees,
                   int world_size, const Suits& suits) {
  const auto product = saturated_product(axes);
  std::vector<std::string> ways;
  if (const auto choices = nearest_choices(axes, world_size, suits); !choices.empty()) {
    ways.push_back("try " + choices);
  }
  if (product < too_many_ranks && is_suitable(axes, degrees, static_cast<int>(product), suits)) {
    ways.push_back("start " + base::counted(product, "rank"));
  }
  if (ways.empty()) return "no degrees suit the model and the batch on so many ranks; start others";
  return base::format("{}", base::join(ways, ", or "));
}

}  // namespace

std::int64_t saturated(std::int64_t first, std::int64_t second) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(first, second, &product) ? std::numeric_limits<std::int64_t>::max()
                                                         : product;
}

std::vector<AxisExtent> extents_of(const ParallelArrangement& arrangement) {
  std::vector<AxisExtent> extents;
  for (const auto axis : all_axes) {
    const auto degree = (arrangement.*row_of(axis).degree.number).value_or(1);
    // A mesh has this axis only where sequences are divided.
    if (axis == Axis::context && degree == 1) continue;
    extents.push_back({axis, static_cast<int>(std::min(degree, too_many_ranks))});
  }
  return extents;
}

std::int64_t saturated_product(const std::vector<AxisExtent>& axes) {
  std::int64_t product = 1;
  for (const AxisExtent& extent : axes) {
    product = std::min(product * extent.degree, too_many_ranks);
  }
  return product;
}

base::Failure wrong_product(std::vector<AxisExtent> axes, int world_size, const Suits& suits) {
  if (axes.empty()) {
    return {base::ExitCode::launch,
            base::format("a mesh without axes is not the world size {} (it has a place for one "
                         "rank); name axes, or start 1 rank",
                         world_size)};
  }
  std::stable_sort(axes.begin(), axes.end(), [](const AxisExtent& a, const AxisExtent& b) {
    return &row_of(a.axis) < &row_of(b.axis);
  });
  std::vector<std::string> keys;
  std::vector<int> degrees;
  for (const AxisExtent& extent : axes) {
    keys.emplace_back(row_of(extent.axis).degree.key);
    degrees.push_back(extent.degree);
  }
  const std::int64_t product = saturated_product(axes);
  return {base::ExitCode::launch,
          base::format("{} = {} = {}{} is not the world size {} (every rank has exactly one place "
                       "in the mesh); {}",
                       base::join(keys, " x "), base::join(degrees, " x "),
                       product < too_many_ranks ? "" : "more than ", product, world_size,
                       advice(axes, degrees, world_size, suits))};
}

}  // namespace trireme::layout
