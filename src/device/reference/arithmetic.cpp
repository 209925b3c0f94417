// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <cstring>

namespace trireme::device::reference {

template <>
void run(const Fill& operation) {
  const auto& [x, value] = operation;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      auto* place = data_of<T>(x) + rows.offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) assign(place[c], value);
    }
  });
}

template <>
void run(const Copy& operation) {
  const auto& [from, to] = operation;
  const Rows rows(from);
  const Rows to_rows(to);
  if (from.dtype() == DType::i32) {
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      std::memcpy(to.i32() + to_rows.offset(row), from.i32() + rows.offset(row),
                  static_cast<std::size_t>(rows.width()) * sizeof(std::int32_t));
    }
    return;
  }
  with_type(from.dtype(), [&](auto in) {
    with_type(to.dtype(), [&](auto out) {
      for (std::int64_t row = 0; row < rows.count(); ++row) {
        const auto* source = data_of<decltype(in)>(from) + rows.offset(row);
        auto* place = data_of<decltype(out)>(to) + to_rows.offset(row);
        for (std::int64_t c = 0; c < rows.width(); ++c) assign(place[c], to_float(source[c]));
      }
    });
  });
}

template <>
void run(const Add& operation) {
  const auto& [x, y, z] = operation;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* a = data_of<T>(x) + rows.offset(row);
      const auto* b = data_of<T>(y) + Rows(y).offset(row);
      auto* place = data_of<T>(z) + Rows(z).offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        assign(place[c], to_float(a[c]) + to_float(b[c]));
      }
    }
  });
}

template <>
void run(const Accumulate& operation) {
  const auto& [x, sum] = operation;
  const Rows rows(x);
  const Rows sum_rows(sum);
  with_type(x.dtype(), [&](auto element) {
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* source = data_of<decltype(element)>(x) + rows.offset(row);
      auto* place = sum.f32() + sum_rows.offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) place[c] += to_float(source[c]);
    }
  });
}

template <>
void run(const HashBits& operation) {
  const auto& [x, hash] = operation;
  const Rows rows(x);
  std::uint64_t total = 0;
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    std::uint64_t index = 0;
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        total += hash_term(numbers[rows.offset(row) + c], index++);
      }
    }
  });
  hash.i32()[0] = static_cast<std::int32_t>(total);
  hash.i32()[1] = static_cast<std::int32_t>(total >> 32U);
}

double sum_of_squares(const Tensor& x) {
  const Rows rows(x);
  double sum = 0;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    const auto* place = x.f32() + rows.offset(row);
    for (std::int64_t c = 0; c < rows.width(); ++c) {
      sum += static_cast<double>(place[c]) * static_cast<double>(place[c]);
    }
  }
  return sum;
}

double sum(const Tensor& x) {
  const Rows rows(x);
  double total = 0;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    const auto* place = x.f32() + rows.offset(row);
    for (std::int64_t c = 0; c < rows.width(); ++c) total += static_cast<double>(place[c]);
  }
  return total;
}

}  // namespace trireme::device::reference
