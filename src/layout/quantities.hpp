// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/parallel_rules.hpp"

#include <span>
#include <string_view>

/// Quantities of an arrangement, and the axes whose degrees are among them. Private to the room.
namespace trireme::layout {

struct AxisRow {
  Axis axis;
  const char* short_name;
  ArrangementKey degree;
};

/// A row for each axis, in the order in which messages name them: that of the configuration's keys.
std::span<const AxisRow> axis_rows();
const AxisRow& row_of(Axis axis);

/// "tensor", "stage_layers".
std::string_view word_of(Quantity quantity);

}  // namespace trireme::layout
