// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/functions.cuh"
#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/mask.cuh"
#include "device/cuda/kernels/own_operations.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace trireme::device::cuda {

/// y = silu(gate) * up.
template <typename T>
struct SwigluForwardBody {
  Matrix<const T> gate;
  Matrix<const T> up;
  Matrix<T> y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto g = load_floats<N>(gate.row(row), column);
    auto u = load_floats<N>(up.row(row), column);
    for (int i = 0; i < N; ++i) u[i] *= g[i] * sigmoid(g[i]);
    store_floats<N>(y.row(row), column, u);
  }
};

template <typename T>
struct SwigluBackwardBody {
  Matrix<const T> dy;
  Matrix<const T> gate;
  Matrix<const T> up;
  Matrix<T> d_gate;
  Matrix<T> d_up;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto d = load_floats<N>(dy.row(row), column);
    auto g = load_floats<N>(gate.row(row), column);
    auto u = load_floats<N>(up.row(row), column);
    for (int i = 0; i < N; ++i) {
      const float x = g[i];
      const float s = sigmoid(x);
      g[i] = d[i] * u[i] * s * (1.0F + x * (1.0F - s));
      u[i] = d[i] * x * s;
    }
    store_floats<N>(d_gate.row(row), column, g);
    store_floats<N>(d_up.row(row), column, u);
  }
};

constexpr float gelu_slope = 0.7978845608F;  // sqrt(2 / pi)
constexpr float gelu_cubic = 0.044715F;

/// GELU's tanh form by way of (1 + tanh(u)) / 2 = sigmoid(2 u), for which a GPU has instructions.
__device__ inline float gelu_gate(float x) {
  return sigmoid(2.0F * gelu_slope * x * (1.0F + gelu_cubic * x * x));
}

template <typename T>
struct GeluForwardBody {
  Matrix<const T> x;
  Matrix<T> y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    auto v = load_floats<N>(x.row(row), column);
    for (int i = 0; i < N; ++i) v[i] *= gelu_gate(v[i]);
    store_floats<N>(y.row(row), column, v);
  }
};

template <typename T>
struct GeluBackwardBody {
  Matrix<const T> dy;
  Matrix<const T> x;
  Matrix<T> dx;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto d = load_floats<N>(dy.row(row), column);
    auto v = load_floats<N>(x.row(row), column);
    for (int i = 0; i < N; ++i) {
      const float gate = gelu_gate(v[i]);
      // The square is bounded: what vanishes beside it must not meet an infinity.
      const float square = fminf(1e8F, v[i] * v[i]);
      const float slope = gelu_slope * (1.0F + 3.0F * gelu_cubic * square);
      v[i] = d[i] * gate * (1.0F + 2.0F * v[i] * (1.0F - gate) * slope);
    }
    store_floats<N>(dx.row(row), column, v);
  }
};

template <typename T>
struct DropoutRows {
  Matrix<const T> x;
  Matrix<T> y;
  Mask mask{Dropout()};

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    auto v = load_floats<N>(x.row(row), column);
    if (mask.active()) mask.apply(mask.first_of(row) + column, v);
    store_floats<N>(y.row(row), column, v);
  }
};

/// The pair (i, i + half) of every head; columns run over half a head.
template <typename T>
struct Rotate {
  Matrix<T> x;
  Matrix<const float> cosine;
  Matrix<const float> sine;
  std::int64_t heads = 0;
  std::int64_t seq = 0;
  std::int64_t first_position = 0;
  float direction = 1.0F;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto position = first_position + divide(divide(row, heads).whole, seq).rest;
    const auto c = load_floats<N>(cosine.row(position), column);
    const auto s = load_floats<N>(sine.row(position), column);
    const auto head = x.row(row);
    const auto half = x.rows.width() / 2;
    auto a = load_floats<N>(head, column);
    auto b = load_floats<N>(head, column + half);
    for (int i = 0; i < N; ++i) {
      const float turn = s[i] * direction;
      const float kept = a[i];
      a[i] = kept * c[i] - b[i] * turn;
      b[i] = b[i] * c[i] + kept * turn;
    }
    store_floats<N>(head, column, a);
    store_floats<N>(head, column + half, b);
  }
};

/// Extent of tensors of one shape that are worked on element by element.
template <typename... Tensors>
Elements elements_of(std::int64_t pack, const Tensor& first, const Tensors&... others) {
  const Rows rows(first);
  return {rows.count(), rows.width(), all_packable(pack, first, others...)};
}

/// Runs Op<T>{inputs, outputs} over tensors of one shape and type T.
template <template <typename> class Op, typename L, std::size_t... I, std::size_t... O>
void run_alike(L& launcher, const char* name, const std::array<Tensor, sizeof...(I)>& inputs,
               const std::array<Tensor, sizeof...(O)>& outputs, std::index_sequence<I...>,
               std::index_sequence<O...>) {
  const Tensor& first = inputs[0];
  const bool flat = all_contiguous(inputs[I]..., outputs[O]...);
  with_type(first.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto extent =
        elements_of(pack_size<T>, as_run(inputs[I], flat)..., as_run(outputs[O], flat)...);
    run_elements<pack_size<T>>(launcher, name, extent,
                               Op<T>{matrix_of<const T>(launcher, as_run(inputs[I], flat))...,
                                     matrix_of<T>(launcher, as_run(outputs[O], flat))...});
  });
}
template <template <typename> class Op, typename L, std::size_t In, std::size_t Out>
void run_alike(L& launcher, const char* name, const std::array<Tensor, In>& inputs,
               const std::array<Tensor, Out>& outputs) {
  run_alike<Op>(launcher, name, inputs, outputs, std::make_index_sequence<In>(),
                std::make_index_sequence<Out>());
}

template <typename L>
void run(L& launcher, const SwigluForward& operation) {
  const auto& [gate, up, y] = operation;
  run_alike<SwigluForwardBody>(launcher, "swiglu_forward", std::array{gate, up}, std::array{y});
}

template <typename L>
void run(L& launcher, const SwigluBackward& operation) {
  const auto& [dy, gate, up, d_gate, d_up] = operation;
  run_alike<SwigluBackwardBody>(launcher, "swiglu_backward", std::array{dy, gate, up},
                                std::array{d_gate, d_up});
}

template <typename L>
void run(L& launcher, const GeluForward& operation) {
  const auto& [x, y] = operation;
  run_alike<GeluForwardBody>(launcher, "gelu_forward", std::array{x}, std::array{y});
}

template <typename L>
void run(L& launcher, const GeluBackward& operation) {
  const auto& [dy, x, dx] = operation;
  run_alike<GeluBackwardBody>(launcher, "gelu_backward", std::array{dy, x}, std::array{dx});
}

template <typename L>
void run(L& launcher, const ApplyDropout& operation) {
  const auto& [x, mask, y] = operation;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "dropout", elements_of(pack_size<T>, x, y),
        DropoutRows<T>{matrix_of<const T>(launcher, x), matrix_of<T>(launcher, y), Mask(mask)});
  });
}

template <typename L>
void run(L& launcher, const Rotary& rotary) {
  const auto& x = rotary.x;
  const auto half = x.dim(3) / 2;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int pack = pack_size<T>;
    const bool packed =
        half % pack == 0 && all_packable(pack, x, rotary.cos_table, rotary.sin_table);
    run_elements<pack>(
        launcher, "rotary", {Rows(x).count(), half, packed},
        Rotate<T>{matrix_of<T>(launcher, x), matrix_of<const float>(launcher, rotary.cos_table),
                  matrix_of<const float>(launcher, rotary.sin_table), x.dim(2), x.dim(1),
                  rotary.first_position, rotary.inverse ? -1.0F : 1.0F});
  });
}

}  // namespace trireme::device::cuda
