// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/parallel_rules.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::layout {

struct AxisRow {
  Axis axis;
  const char* short_name;
  Quantity degree;
};

/// A row for each axis, in the order in which messages name them: that of the configuration's keys.
inline constexpr AxisRow axis_rows[] = {{Axis::tensor, "tp", Quantity::tensor},
                                        {Axis::pipeline, "pp", Quantity::pipeline},
                                        {Axis::data, "dp", Quantity::data}};
static_assert(std::size(axis_rows) == axis_count, "every axis has a row");

constexpr const AxisRow* row_of(Axis axis) {
  return std::find_if(std::begin(axis_rows), std::end(axis_rows),
                      [axis](const AxisRow& row) { return row.axis == axis; });
}

}  // namespace trireme::layout
