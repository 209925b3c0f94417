// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

namespace trireme::device::reference {

template <>
void run(const EmbeddingForward& operation) {
  const auto& [tokens, table, first_token, out] = operation;
  const Rows from(table);
  const Rows to(out);
  with_type(table.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < to.count(); ++row) {
      const auto local = tokens.i32()[row] - first_token;
      auto* place = data_of<T>(out) + to.offset(row);
      const bool here = local >= 0 && local < from.count();
      const auto* source = data_of<T>(table) + (here ? from.offset(local) : 0);
      for (std::int64_t c = 0; c < to.width(); ++c) place[c] = here ? source[c] : T{};
    }
  });
}

template <>
void run(const EmbeddingBackward& operation) {
  const auto& [tokens, d_out, first_token, d_table] = operation;
  const Rows from(d_out);
  const Rows to(d_table);
  with_type(d_out.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < from.count(); ++row) {
      const auto local = tokens.i32()[row] - first_token;
      if (local < 0 || local >= to.count()) continue;
      const auto* source = data_of<T>(d_out) + from.offset(row);
      auto* place = d_table.f32() + to.offset(local);
      for (std::int64_t c = 0; c < to.width(); ++c) place[c] += to_float(source[c]);
    }
  });
}

template <>
void run(const AddPositions& operation) {
  const auto& [x, table, seq, first_position] = operation;
  const Rows rows(x);
  const Rows positions(table);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      auto* place = data_of<T>(x) + rows.offset(row);
      const auto* source = data_of<T>(table) + positions.offset(first_position + row % seq);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        assign(place[c], to_float(place[c]) + to_float(source[c]));
      }
    }
  });
}

template <>
void run(const AddPositionsBackward& operation) {
  const auto& [dx, seq, d_table] = operation;
  const Rows rows(dx);
  const Rows positions(d_table);
  with_type(dx.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* source = data_of<T>(dx) + rows.offset(row);
      auto* place = d_table.f32() + positions.offset(row % seq);
      for (std::int64_t c = 0; c < rows.width(); ++c) place[c] += to_float(source[c]);
    }
  });
}

}  // namespace trireme::device::reference
