// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/float8.hpp"

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"

#include <bit>

namespace trireme::device::cuda {

/// The bits of a number's magnitude, which have the order of magnitudes, NaN last.
__device__ inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

/// partials[block] = the largest magnitude that the block sees. The largest of all does not depend
/// on who sees what.
template <typename T, int N>
__global__ void __launch_bounds__(256)
    largest_of_rows(Matrix<const T> x, simt::Global<std::uint32_t> partials) {
  const auto width = x.rows.width();
  const auto packs = (width + N - 1) / N;
  const auto step = simt::blocks() * simt::threads();
  std::uint32_t largest = 0;
  const auto take = [&](float value) {
    const auto bits = magnitude_bits(value);
    largest = bits > largest ? bits : largest;
  };
  auto index = simt::block() * simt::threads() + simt::thread();
  for (; index < x.rows.count() * packs; index += step) {
    const auto place = x.rows.count() == 1 ? Quotient{0, index} : divide(index, packs);
    const auto row = x.row(place.whole);
    const auto column = place.rest * N;
    if (column + N <= width) {
      const auto values = load_floats<N>(row, column);
      for (int i = 0; i < N; ++i) take(values[i]);
    } else {
      for (auto single = column; single < width; ++single) take(simt::widen(row.load(single)));
    }
  }
  largest = block_largest(largest);
  if (simt::thread() == 0) partials.store(simt::block(), largest);
}

/// Largest of the partial results, by one block.
template <int threads>
__global__ void __launch_bounds__(threads)
    largest_of_partials(simt::Global<const std::uint32_t> partials, std::int64_t count,
                        simt::Global<float> result) {
  std::uint32_t largest = 0;
  for (std::int64_t i = simt::thread(); i < count; i += threads) {
    const auto bits = partials.load(i);
    largest = bits > largest ? bits : largest;
  }
  largest = block_largest(largest);
  if (simt::thread() == 0) result.store(0, std::bit_cast<float>(largest));
}

/// bf16: two bytes read and one written for each element.
template <typename T>
struct QuantiseRows {
  Matrix<const T> x;
  simt::Global<const float> magnitude;
  Matrix<E4m3> codes;
  simt::Global<float> unscale;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const float scale = e4m3_scale(magnitude.load(0));
    auto values = load_floats<N>(x.row(row), column);
    for (int i = 0; i < N; ++i) values[i] *= scale;
    store_floats<N>(codes.row(row), column, values);
    if (row == 0 && column == 0) unscale.store(0, e4m3_unscale(scale));
  }
};

template <typename L>
void run(L& launcher, const LargestMagnitude& operation) {
  const auto& [x, magnitude] = operation;
  const Tensor from = as_run(x, all_contiguous(x));
  constexpr int threads = 256;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const Rows rows(from);
    const bool packed = packable(from, pack_size<T>);
    const auto per_row = packed ? ceil_div(rows.width(), pack_size<T>) : rows.width();
    TRIREME_EXPECT(rows.count() <= 1 || rows.count() * per_row <= largest_dividend,
                   "a kernel's rows have at most 2^32 packs");
    const auto grid = grid_for(launcher, rows.count() * per_row, threads, threads);
    auto partials = launcher.template workspace<std::uint32_t>(grid.blocks);
    const auto numbers = matrix_of<const T>(launcher, from);
    const auto kernel = packed ? &largest_of_rows<T, pack_size<T>> : &largest_of_rows<T, 1>;
    launcher.launch("largest_magnitude", kernel, grid, numbers, partials);
    launcher.launch("largest_magnitude", &largest_of_partials<threads>, Grid{1, threads}, partials,
                    grid.blocks, memory_of<float>(launcher, magnitude));
  });
}

template <typename L>
void run(L& launcher, const Quantise& operation) {
  const auto& [x, magnitude, result] = operation;
  const bool flat = all_contiguous(x);
  const Tensor from = as_run(x, flat);
  const Tensor to = as_run(result.codes, flat);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int pack = pack_size<E4m3>;
    const Rows rows(from);
    run_elements<pack>(
        launcher, "quantise", {rows.count(), rows.width(), all_packable(pack, from, to)},
        QuantiseRows<T>{matrix_of<const T>(launcher, from),
                        memory_of<const float>(launcher, magnitude), matrix_of<E4m3>(launcher, to),
                        memory_of<float>(launcher, result.unscale)});
  });
}

}  // namespace trireme::device::cuda
