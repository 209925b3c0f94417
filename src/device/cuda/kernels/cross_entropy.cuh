#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/reduce.cuh"
#include "device/cuda/operations.hpp"

#include <cmath>

namespace trireme::device::cuda {

/// Of the numbers seen so far: the largest, and the sum of exp(number - largest).
struct Exponentials {
  float largest = -INFINITY;
  float sum = 0.0F;

  __device__ void take(float value) {
    if (value > largest) {
      sum = sum * expf(largest - value) + 1.0F;
      largest = value;
    } else if (value != -INFINITY || largest != -INFINITY) {
      sum += expf(value - largest);  // a NaN stays
    }
  }
  __device__ void join(const Exponentials& other) {
    const float both = other.largest > largest ? other.largest : largest;
    if (both == -INFINITY) {
      sum += other.sum;  // nothing, or a NaN
      return;
    }
    sum = sum * expf(largest - both) + other.sum * expf(other.largest - both);
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

/// A block takes a row: one pass over the logits.
template <typename T, int N>
__global__ void __launch_bounds__(256)
    cross_entropy_rows(Matrix<const T> logits, simt::Global<const std::int32_t> targets,
                       std::int64_t first_token, simt::Global<float> stats, std::int64_t pitch) {
  __shared__ simt::Shared<float, simt::warp_size> largest;
  __shared__ simt::Shared<float, simt::warp_size> sums;
  const auto row = simt::block();
  const auto logit = logits.row(row);
  const auto width = logits.rows.width();
  Exponentials own;
  for (auto c = std::int64_t{simt::thread()} * N; c < width;
       c += std::int64_t{simt::threads()} * N) {
    if (c + N <= width) {
      const auto values = load_floats<N>(logit, c);
      for (int i = 0; i < N; ++i) own.take(values[i]);
    } else {
      for (auto single = c; single < width; ++single) own.take(simt::widen(logit.load(single)));
    }
  }
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

/// softmax - one_hot(target), in place.
template <typename T>
struct CrossEntropyGradient {
  Matrix<T> logits;
  simt::Global<const std::int32_t> targets;
  std::int64_t first_token = 0;
  simt::Global<const float> lse;
  float scale = 1.0F;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto target = targets.load(row);
    const float offset = lse.load(row);
    auto v = load_floats<N>(logits.row(row), column);
    for (int i = 0; i < N; ++i) {
      const float hit = target == first_token + column + i ? 1.0F : 0.0F;
      v[i] = target < 0 ? 0.0F : (expf(v[i] - offset) - hit) * scale;
    }
    store_floats<N>(logits.row(row), column, v);
  }
};

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
void cross_entropy_stats(L& launcher, const Tensor& logits, const Tensor& targets,
                         std::int64_t first_token, const Tensor& stats) {
  const Rows rows(logits);
  TRIREME_EXPECT(targets.contiguous() && targets.element_count() == rows.count() &&
                     stats.dim(0) == 3 && stats.dim(1) == rows.count(),
                 "cross-entropy: logits " + logits.text() + ", stats " + stats.text());
  if (rows.count() == 0) return;
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int pack = pack_size<T>;
    const Grid grid{rows.count(), 256};
    const auto from = matrix_of<const T>(launcher, logits);
    const auto ids = tokens_of(launcher, targets);
    const auto to = memory_of<float>(launcher, stats);
    if (packable(logits, pack)) {
      launcher.launch("cross_entropy_stats", &cross_entropy_rows<T, pack>, grid, from, ids,
                      first_token, to, stats.stride(0));
    } else {
      launcher.launch("cross_entropy_stats", &cross_entropy_rows<T, 1>, grid, from, ids,
                      first_token, to, stats.stride(0));
    }
  });
}

template <typename L>
void cross_entropy_gradient(L& launcher, const Tensor& logits, const Tensor& targets,
                            std::int64_t first_token, const Tensor& lse, float scale) {
  const Rows rows(logits);
  TRIREME_EXPECT(targets.contiguous() && targets.element_count() == rows.count() &&
                     lse.contiguous() && lse.element_count() == rows.count(),
                 "cross-entropy: logits " + logits.text() + ", lse " + lse.text());
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "cross_entropy_gradient",
        {rows.count(), rows.width(), packable(logits, pack_size<T>)},
        CrossEntropyGradient<T>{matrix_of<T>(launcher, logits), tokens_of(launcher, targets),
                                first_token, memory_of<const float>(launcher, lse), scale});
  });
}

template <typename L>
void cross_entropy_combine(L& launcher, const Tensor& stats, const Tensor& targets,
                           const Tensor& lse, const Tensor& losses) {
  const auto rows = stats.dim(2);
  TRIREME_EXPECT(stats.contiguous() && targets.element_count() == rows &&
                     lse.element_count() == rows && losses.element_count() == rows,
                 "cross-entropy: stats " + stats.text());
  run_elements<1>(launcher, "cross_entropy_combine", {1, rows, false},
                  CombineStats{memory_of<const float>(launcher, stats),
                               tokens_of(launcher, targets), memory_of<float>(launcher, lse),
                               memory_of<float>(launcher, losses), stats.dim(0), rows});
}

}  // namespace trireme::device::cuda
