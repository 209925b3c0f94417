// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/functions.cuh"
#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"

#include <cmath>

namespace trireme::device::cuda {

/// Statistics of the numbers seen so far: the largest, and the sum of exp(number - largest).
struct Exponentials {
  float largest = -INFINITY;
  float sum = 0.0F;

  /// One step to the largest of several, and then an exponential each, without branches.
  template <int N>
  __device__ void take(const Floats<N>& values) {
    const float before = largest;
    for (int i = 0; i < N; ++i) largest = fmaxf(largest, values[i]);
    // A NaN stays; minus infinity adds nothing, to nothing neither.
    const float base = largest == -INFINITY ? 0.0F : largest;
    sum *= exp_near(before - base);
    for (int i = 0; i < N; ++i) sum += exp_near(values[i] - base);
  }
  __device__ void join(const Exponentials& other) {
    const float both = other.largest > largest ? other.largest : largest;
    if (both == -INFINITY) {
      sum += other.sum;  // zero, or a NaN
      return;
    }
    sum = sum * exp_near(largest - both) + other.sum * exp_near(other.largest - both);
    largest = both;
  }
};

__device__ inline void join_warp(Exponentials& own) {
  for (int mask = simt::warp_size / 2; mask > 0; mask /= 2) {
    Exponentials other;
    other.largest = simt::shuffle_xor(own.largest, mask);
    other.sum = simt::shuffle_xor(own.sum, mask);
    own.join(other);
  }
}

/// Visits a row's elements, a block's threads in turn: N at a time from the first place where they
/// can be moved together, those before and after it one at a time. Rows of an odd vocabulary begin
/// anywhere. Of a long row two accesses are under way at once.
template <int N, typename T, typename Body>
__device__ void visit_row(const simt::Global<T>& row, std::int64_t width, const Body& body) {
  const auto past = row.template past_pack<N>();
  const auto before = past == 0 ? std::int64_t{0} : std::int64_t{N} - past;
  const auto head = before < width ? before : width;
  if (simt::thread() < head) body.template run<1>(simt::thread());
  auto c = head + std::int64_t{simt::thread()} * N;
  const auto step = std::int64_t{simt::threads()} * N;
  for (; c + step + N <= width; c += 2 * step) body.template run_two<N>(c, c + step);
  if (c + N <= width) body.template run<N>(c);
  const auto tail = head + (width - head) / N * N;
  if (tail + simt::thread() < width) body.template run<1>(tail + simt::thread());
}

template <typename T>
struct TakeLogits {
  const simt::Global<const T>& logits;
  Exponentials& own;

  template <int N>
  __device__ void run(std::int64_t column) const {
    own.take(load_floats<N>(logits, column));
  }
  template <int N>
  __device__ void run_two(std::int64_t first, std::int64_t second) const {
    const auto of_first = load_floats<N>(logits, first);
    const auto of_second = load_floats<N>(logits, second);
    own.take(of_first);
    own.take(of_second);
  }
};

/// A block takes a row: one pass over the logits.
template <typename T>
__global__ void __launch_bounds__(256)
    cross_entropy_rows(Matrix<const T> logits, simt::Global<const std::int32_t> targets,
                       std::int64_t first_token, simt::Global<float> stats, std::int64_t pitch) {
  __shared__ simt::Shared<float, simt::warp_size> largest;
  __shared__ simt::Shared<float, simt::warp_size> sums;
  const auto row = simt::block();
  const auto logit = logits.row(row);
  const auto width = logits.rows.width();
  Exponentials own;
  visit_row<pack_size<T>>(logit, width, TakeLogits<T>{logit, own});
  join_warp(own);
  if (simt::lane() == 0) {
    largest.store(simt::warp(), own.largest);
    sums.store(simt::warp(), own.sum);
  }
  simt::sync();
  if (simt::warp() != 0) return;
  own = {};
  if (simt::lane() < simt::threads() / simt::warp_size) {
    own.largest = largest.load(simt::lane());
    own.sum = sums.load(simt::lane());
  }
  join_warp(own);
  if (simt::lane() != 0) return;
  const auto target = targets.load(row);
  const auto local = target - first_token;
  const bool here = target >= 0 && local >= 0 && local < width;
  stats.store(row, own.largest);
  stats.store(pitch + row, own.sum);
  stats.store(2 * pitch + row, here ? simt::widen(logit.load(local)) : 0.0F);
}

/// softmax - one_hot(target) of one row, in place.
template <typename T>
struct RowGradient {
  const simt::Global<T>& logits;
  /// The target's column, if it is one of these.
  std::int64_t hit = 0;
  bool counted = true;
  float lse = 0.0F;
  float scale = 1.0F;

  template <int N>
  __device__ void store(std::int64_t column, Floats<N>& v) const {
    const auto away = hit - column;
    const int place = away >= 0 && away < N ? static_cast<int>(away) : -1;
    for (int i = 0; i < N; ++i) {
      const float one = place == i ? 1.0F : 0.0F;
      v[i] = counted ? (exp_near(v[i] - lse) - one) * scale : 0.0F;
    }
    store_floats<N>(logits, column, v);
  }
  template <int N>
  __device__ void run(std::int64_t column) const {
    auto v = load_floats<N>(logits, column);
    store<N>(column, v);
  }
  template <int N>
  __device__ void run_two(std::int64_t first, std::int64_t second) const {
    auto of_first = load_floats<N>(logits, first);
    auto of_second = load_floats<N>(logits, second);
    store<N>(first, of_first);
    store<N>(second, of_second);
  }
};

/// A block takes a row.
template <typename T>
__global__ void __launch_bounds__(256)
    cross_entropy_gradient_rows(Matrix<T> logits, simt::Global<const std::int32_t> targets,
                                std::int64_t first_token, simt::Global<const float> lse,
                                float scale, simt::Global<const float> factor) {
  const auto row = simt::block();
  if (factor) scale *= factor.load(0);
  const auto target = targets.load(row);
  const auto logit = logits.row(row);
  visit_row<pack_size<T>>(
      logit, logits.rows.width(),
      RowGradient<T>{logit, target - first_token, target >= 0, lse.load(row), scale});
}

/// Joins the parts of a vocabulary; "columns" are rows of logits here.
struct CombineStats {
  simt::Global<const float> stats;
  simt::Global<const std::int32_t> targets;
  simt::Global<float> lse;
  simt::Global<float> losses;
  std::int64_t parts;
  std::int64_t rows;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t row) const {
    static_assert(N == 1);
    float largest = stats.load(row);
    for (std::int64_t part = 1; part < parts; ++part) {
      const float other = stats.load(part * 3 * rows + row);
      largest = other > largest ? other : largest;
    }
    double sum = 0;
    float target = 0.0F;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto first = part * 3 * rows + row;
      sum += static_cast<double>(stats.load(first + rows)) *
             exp(static_cast<double>(stats.load(first)) - static_cast<double>(largest));
      target += stats.load(first + 2 * rows);
    }
    const auto whole = static_cast<float>(static_cast<double>(largest) + log(sum));
    lse.store(row, whole);
    losses.store(row, targets.load(row) < 0 ? 0.0F : whole - target);
  }
};

template <typename L>
void run(L& launcher, const CrossEntropyStats& operation) {
  const auto& [logits, targets, first_token, stats] = operation;
  const Rows rows(logits);
  if (rows.count() == 0) return;
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch("cross_entropy_stats", &cross_entropy_rows<T>, Grid{rows.count(), 256},
                    matrix_of<const T>(launcher, logits), tokens_of(launcher, targets), first_token,
                    memory_of<float>(launcher, stats), stats.stride(0));
  });
}

template <typename L>
void run(L& launcher, const CrossEntropyGradient& operation) {
  const auto& [logits, targets, first_token, lse, scale, factor] = operation;
  const Rows rows(logits);
  if (rows.count() == 0) return;
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch(
        "cross_entropy_gradient", &cross_entropy_gradient_rows<T>, Grid{rows.count(), 256},
        matrix_of<T>(launcher, logits), tokens_of(launcher, targets), first_token,
        memory_of<const float>(launcher, lse), scale, memory_of<const float>(launcher, factor));
  });
}

template <typename L>
void run(L& launcher, const CrossEntropyCombine& operation) {
  const auto& [stats, targets, lse, losses] = operation;
  const auto rows = stats.dim(2);
  run_elements<1>(launcher, "cross_entropy_combine", {1, rows, false},
                  CombineStats{memory_of<const float>(launcher, stats),
                               tokens_of(launcher, targets), memory_of<float>(launcher, lse),
                               memory_of<float>(launcher, losses), stats.dim(0), rows});
}

}  // namespace trireme::device::cuda
