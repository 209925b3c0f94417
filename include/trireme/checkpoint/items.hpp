// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"
#include "trireme/layout/box.hpp"

#include <string>
#include <vector>

namespace trireme::checkpoint {

/// A box of a logical tensor that this rank holds and can write. Every rank names all that it
/// holds, replicas too: save() finds them and writes each element once.
///
/// Parameters have their names alone ("layers.0.mlp.up.weight"); what belongs to one has a purpose
/// before it ("adamw.first_moment/layers.0.mlp.up.weight"). Allowed: letters, digits and "._-/:+".
struct SaveItem {
  std::string name;
  /// Shape of the whole tensor; one to four dimensions.
  layout::Shape shape;
  /// Part that this rank holds; an item whose box is empty is passed over.
  layout::Box box;
  /// The box's elements: as many dimensions as the box (strided is welcome), or a contiguous
  /// run of the same element count in row-major order. Its type is the type on disk.
  device::Tensor data;
};

/// A box of a logical tensor that this rank wants, and where to.
struct LoadItem {
  std::string name;
  /// Must be the stored shape.
  layout::Shape shape;
  layout::Box box;
  /// Like SaveItem::data. f32 and bf16 are converted into each other (nearest even); any other
  /// difference from the stored type is refused.
  device::Tensor destination;
};

/// A part of a tensor that one writer will write.
struct Assignment {
  std::size_t item = 0;  ///< index into that writer's items
  layout::Box box;       ///< inside the item's box
};

/// A box without its data: what ranks tell each other before a save.
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
