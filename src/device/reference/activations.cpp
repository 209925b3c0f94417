// SPDX-License-Identifier: Apache-2.0
#include "device/dropout_mask.hpp"
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <cmath>

namespace trireme::device::reference {
namespace {

float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

constexpr double gelu_slope = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

/// (1 + tanh(u)) / 2 of GELU's tanh form, as sigmoid(2 u): the sum would leave few digits of
/// negative numbers, whose other half it cancels.
double gelu_gate(double x) {
  return 1.0 / (1.0 + std::exp(-gelu_slope * (x + gelu_cubic * x * x * x)));
}

float gelu(float x) {
  const auto value = static_cast<double>(x);
  return static_cast<float>(value * gelu_gate(value));
}

float gelu_derivative(float x) {
  const auto value = static_cast<double>(x);
  const double gate = gelu_gate(value);
  const double inner = gelu_slope * (1.0 + 3.0 * gelu_cubic * value * value);
  return static_cast<float>(gate + value * gate * (1.0 - gate) * inner);
}

}  // namespace

template <>
void run(const SwigluForward& operation) {
  const auto& [gate, up, y] = operation;
  const Rows rows(gate);
  with_type(gate.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* g = data_of<T>(gate) + rows.offset(row);
      const auto* u = data_of<T>(up) + Rows(up).offset(row);
      auto* place = data_of<T>(y) + Rows(y).offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        const float x = to_float(g[c]);
        assign(place[c], x * sigmoid(x) * to_float(u[c]));
      }
    }
  });
}

template <>
void run(const SwigluBackward& operation) {
  const auto& [dy, gate, up, d_gate, d_up] = operation;
  const Rows rows(dy);
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* d = data_of<T>(dy) + rows.offset(row);
      const auto* g = data_of<T>(gate) + Rows(gate).offset(row);
      const auto* u = data_of<T>(up) + Rows(up).offset(row);
      auto* dg = data_of<T>(d_gate) + Rows(d_gate).offset(row);
      auto* du = data_of<T>(d_up) + Rows(d_up).offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        const float x = to_float(g[c]);
        const float s = sigmoid(x);
        const float upstream = to_float(d[c]);
        const float through = upstream * to_float(u[c]) * s * (1.0F + x * (1.0F - s));
        assign(du[c], upstream * x * s);
        assign(dg[c], through);
      }
    }
  });
}

template <>
void run(const GeluForward& operation) {
  const auto& [x, y] = operation;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* from = data_of<T>(x) + rows.offset(row);
      auto* to = data_of<T>(y) + Rows(y).offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) assign(to[c], gelu(to_float(from[c])));
    }
  });
}

template <>
void run(const GeluBackward& operation) {
  const auto& [dy, x, dx] = operation;
  const Rows rows(dy);
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* d = data_of<T>(dy) + rows.offset(row);
      const auto* from = data_of<T>(x) + Rows(x).offset(row);
      auto* to = data_of<T>(dx) + Rows(dx).offset(row);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        assign(to[c], to_float(d[c]) * gelu_derivative(to_float(from[c])));
      }
    }
  });
}

template <>
void run(const ApplyDropout& operation) {
  const auto& [x, dropout, y] = operation;
  const Rows rows(x);
  const DropoutMask mask(dropout);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* from = data_of<T>(x) + rows.offset(row);
      auto* to = data_of<T>(y) + Rows(y).offset(row);
      const auto first = dropout_index(dropout, row);
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        assign(to[c],
               mask.active() ? to_float(from[c]) * mask.factor(first + c) : to_float(from[c]));
      }
    }
  });
}

template <>
void run(const Rotary& operation) {
  const auto& [x, cos_table, sin_table, first_position, inverse] = operation;
  const auto half = x.dim(3) / 2;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      auto* head = data_of<T>(x) + rows.offset(row);
      const auto position = first_position + row / x.dim(2) % x.dim(1);
      for (std::int64_t i = 0; i < half; ++i) {
        const float c = cos_table.f32()[position * cos_table.stride(0) + i];
        const float s =
            sin_table.f32()[position * sin_table.stride(0) + i] * (inverse ? -1.0F : 1.0F);
        const float a = to_float(head[i]);
        const float b = to_float(head[i + half]);
        assign(head[i], a * c - b * s);
        assign(head[i + half], b * c + a * s);
      }
    }
  });
}

}  // namespace trireme::device::reference
