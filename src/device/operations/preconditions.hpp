// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include "device/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

/// Words in which operations say what their operands have to be. None of them allocates: an
/// operation is checked each time that it is issued.
namespace trireme::device {

/// "scale_rows: x f32 [2, 3], factors f32 [4], y f32 [2, 3]".
template <typename One>
std::string text_of(One operation) {
  std::string text;
  operation.operands([&text](const char* name, const Tensor& operand, Role) {
    text += base::format("{} {} {}", text.empty() ? ":" : ",", name,
                         operand ? operand.text() : "empty");
  });
  return operation.name + text;
}

inline bool has_shape(const Tensor& x, std::initializer_list<std::int64_t> shape) {
  int index = 0;
  return x.rank() == static_cast<int>(shape.size()) &&
         std::all_of(shape.begin(), shape.end(),
                     [&](std::int64_t length) { return x.dim(index++) == length; });
}

inline bool same_shape(const Tensor& a, const Tensor& b) {
  if (a.rank() != b.rank()) return false;
  for (int index = 0; index < a.rank(); ++index) {
    if (a.dim(index) != b.dim(index)) return false;
  }
  return true;
}
template <typename... Others>
bool same_shape(const Tensor& a, const Tensor& b, const Others&... others) {
  return same_shape(a, b) && (same_shape(a, others) && ...);
}

/// True if each lies in one run of `count` elements.
template <typename... Runs>
bool are_runs(std::int64_t count, const Runs&... runs) {
  return ((runs.contiguous() && runs.element_count() == count) && ...);
}
/// Likewise, or empty.
template <typename... Runs>
bool are_runs_if_any(std::int64_t count, const Runs&... runs) {
  return ((!runs || are_runs(count, runs)) && ...);
}

/// [rows, columns] in one run.
inline bool is_matrix(const Tensor& x) {
  return x.rank() == 2 && x.contiguous();
}
/// [count, rows, columns] in one run.
inline bool is_batch(const Tensor& x) {
  return x.rank() == 3 && x.contiguous();
}

}  // namespace trireme::device
