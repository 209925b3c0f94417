// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"
#include "trireme/layout/box.hpp"

#include <string>
#include <vector>

namespace trireme::checkpoint {

/// Box of a logical tensor that this rank holds and can write. Every rank lists all that it holds,
/// replicas too: save() detects them and writes each element once.
///
/// Parameters have only their names ("layers.0.mlp.up.weight"); tensors that belong to one have a
/// prefix for their purpose ("adamw.first_moment/layers.0.mlp.up.weight"). Allowed: letters, digits
/// and "._-/:+".
struct SaveItem {
  std::string name;
  /// Shape of the whole tensor; one to four dimensions.
  layout::Shape shape;
  /// Part that this rank holds; an item whose box is empty is skipped.
  layout::Box box;
  /// Elements of the box: as many dimensions as the box (strides are allowed), or a contiguous run
  /// of the same element count in row-major order. Its type is the type on disk.
  device::Tensor data;
};

/// Box of a logical tensor that this rank loads, and its destination.
struct LoadItem {
  std::string name;
  /// Shape, which must equal the stored one.
  layout::Shape shape;
  layout::Box box;
  /// Memory like SaveItem::data. f32 and bf16 are converted into each other (nearest even); any
  /// other difference from the stored type is refused.
  device::Tensor destination;
};

/// Part of a tensor that is assigned to one writer.
struct Assignment {
  std::size_t item = 0;  ///< index into that writer's items
  layout::Box box;       ///< inside the item's box
};

/// Box without its data: ranks exchange these before a save.
struct HeldBox {
  std::string name;
  layout::Shape shape;
  device::DType dtype = device::DType::f32;
  layout::Box box;
};

/// Boxes that each rank writes, as a pure function of what all ranks hold: result[rank]. Each
/// element of each tensor is written by exactly one rank. Replicas of one box are cut into shard
/// pieces spread over the ranks that hold it, such that all ranks write about the same number of
/// bytes. Throws Error (internal) when ranks disagree about a tensor's shape or type, when boxes
/// overlap without being equal, or when a tensor is not covered: naming tensor, ranks and boxes.
std::vector<std::vector<Assignment>> assign_writers(const std::vector<std::vector<HeldBox>>& held);

}  // namespace trireme::checkpoint
