// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/views.cuh"
#include "device/cuda/runtime/grid.hpp"
#include "device/elements.hpp"

#include <algorithm>
#include <cstdint>

/// Division of operations into grids. A `Launcher` starts kernels: on a stream of a GPU
/// (device/cuda/runtime/launcher.hpp), or on the tests' executor.
namespace trireme::device::cuda {

constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t part) {
  return (count + part - 1) / part;
}

/// Enough blocks for `items`, of which a block takes `per_block`, but no more than the GPU holds
/// at once a few times over: kernels step through what is left.
template <typename Launcher>
Grid grid_for(const Launcher& launcher, std::int64_t items, std::int64_t per_block, int threads) {
  const std::int64_t most = std::int64_t{16} * launcher.multiprocessors();
  return {std::clamp<std::int64_t>(ceil_div(items, per_block), 1, most), threads};
}

/// A tensor's elements, for kernels; T may be const.
template <typename T, typename Launcher>
simt::Global<T> memory_of(Launcher&, const Tensor& tensor) {
  return simt::Global<T>(data_of<std::remove_const_t<T>>(tensor));
}
template <typename Launcher>
simt::Global<const std::int32_t> tokens_of(Launcher&, const Tensor& tensor) {
  return simt::Global<const std::int32_t>(tensor.i32());
}
template <typename T, typename Launcher>
Matrix<T> matrix_of(Launcher& launcher, const Tensor& tensor) {
  return {memory_of<T>(launcher, tensor), RowMap(Rows(tensor))};
}

/// True if `elements` neighbours can be moved together in every row, in accesses of at most 16
/// bytes.
inline bool packable(const Tensor& tensor, std::int64_t elements) {
  if (!tensor) return true;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
  const auto together = std::min<std::int64_t>(elements, 16 / size);
  return reinterpret_cast<std::uintptr_t>(tensor.raw()) %
                 static_cast<std::uintptr_t>(together * size) ==
             0 &&
         Rows(tensor).spaced_by_multiples_of(together);
}
template <typename... Tensors>
bool all_packable(std::int64_t elements, const Tensors&... tensors) {
  return (packable(tensors, elements) && ...);
}

/// Tensors whose elements all lie in one run each need no rows.
template <typename... Tensors>
bool all_contiguous(const Tensors&... tensors) {
  return ((!tensors || tensors.contiguous()) && ...);
}
inline Tensor as_run(const Tensor& tensor, bool flat) {
  return flat && tensor ? Tensor(tensor.raw(), tensor.dtype(), {tensor.element_count()}) : tensor;
}

/// body.run<N>(row, column) for every element of `rows` rows, N neighbours at a time; what is left
/// at the end of a row goes one by one.
template <int N, typename Body>
__global__ void __launch_bounds__(256)
    for_each_pack(Body body, std::int64_t rows, std::int64_t width) {
  const auto packs = (width + N - 1) / N;
  const auto step = simt::blocks() * simt::threads();
  auto index = simt::block() * simt::threads() + simt::thread();
  for (; index < rows * packs; index += step) {
    const auto place = rows == 1 ? Quotient{0, index} : divide(index, packs);
    const auto row = place.whole;
    const auto column = place.rest * N;
    if (column + N <= width) {
      body.template run<N>(row, column);
    } else {
      for (auto single = column; single < width; ++single) body.template run<1>(row, single);
    }
  }
}

/// Rows and width that bodies run over, and whether packs may be used.
struct Elements {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool packed = false;
};

template <int N, typename Launcher, typename Body>
void run_elements(Launcher& launcher, const char* name, const Elements& elements,
                  const Body& body) {
  if (elements.rows == 0 || elements.width == 0) return;
  constexpr int threads = 256;
  const auto per_row = elements.packed ? ceil_div(elements.width, N) : elements.width;
  TRIREME_EXPECT(elements.rows == 1 || elements.rows * per_row <= largest_dividend,
                 "a kernel's rows have at most 2^32 packs");
  const auto grid = grid_for(launcher, elements.rows * per_row, threads, threads);
  if (elements.packed) {
    launcher.launch(name, &for_each_pack<N, Body>, grid, body, elements.rows, elements.width);
  } else {
    launcher.launch(name, &for_each_pack<1, Body>, grid, body, elements.rows, elements.width);
  }
}

}  // namespace trireme::device::cuda
