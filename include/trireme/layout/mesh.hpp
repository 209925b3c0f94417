// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/base/result.hpp"

#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace trireme::layout {

/// Direction in which work is split over ranks. Expert parallelism may be added: code must not
/// assume four axes.
enum class Axis { pipeline, data, context, tensor };
inline constexpr Axis all_axes[] = {Axis::pipeline, Axis::data, Axis::context, Axis::tensor};
inline constexpr std::size_t axis_count = std::size(all_axes);
/// Axes along which ranks hold the same parameters and divide a batch: its sequences, and the
/// tokens of these. Over both together gradients are summed, and ZeRO divides state.
inline constexpr Axis replica_axes[] = {Axis::data, Axis::context};

/// "pp", "dp", "cp", "tp".
const char* short_name(Axis axis);

struct AxisExtent {
  Axis axis;
  int degree;
  bool operator==(const AxisExtent&) const = default;
};

/// An arrangement of ranks: axes outermost first, the innermost varies fastest with the rank.
/// The default order is pp, dp, cp, tp, so that a tensor-parallel group is consecutive ranks. A
/// mesh has an axis cp only where sequences are divided.
class Mesh {
 public:
  /// Refuses degrees below 1, a repeated axis, and a product that is not the world size (with
  /// the nearest choices that are).
  static base::Result<Mesh> create(std::vector<AxisExtent> axes, int world_size);
  /// pp x dp x cp x tp in the default order; degrees must be positive.
  static Mesh of(int pipeline, int data, int tensor, int context = 1);

  int world_size() const { return world_size_; }
  const std::vector<AxisExtent>& axes() const { return axes_; }
  /// 1 for an axis that this mesh does not have.
  int degree(Axis axis) const;
  /// Ranks of a group over several axes.
  int degree(std::span<const Axis> axes) const;
  /// 0 for an axis that this mesh does not have.
  int coordinate(Axis axis, base::Rank rank) const;
  /// Index of the rank in its group over several axes.
  int coordinate(std::span<const Axis> axes, base::Rank rank) const;
  /// Distance in ranks between neighbours along an axis; 0 for an axis that this mesh lacks.
  int stride(Axis axis) const;
  /// The rank that equals `rank` but for its coordinate on `axis`.
  base::Rank moved(base::Rank rank, Axis axis, int coordinate) const;
  /// All ranks that differ from `member` on these axes only, ascending; `member` is among them.
  std::vector<base::Rank> group(std::span<const Axis> axes, base::Rank member) const;
  std::vector<base::Rank> group(Axis axis, base::Rank member) const;
  /// "pp2 x dp3 x tp2".
  std::string text() const;

  bool operator==(const Mesh&) const = default;

 private:
  Mesh(std::vector<AxisExtent> axes, int world_size)
      : axes_(std::move(axes)), world_size_(world_size) {}

  std::vector<AxisExtent> axes_;
  int world_size_ = 1;
};

}  // namespace trireme::layout
