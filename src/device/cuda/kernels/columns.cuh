// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"

/// Sums over the rows of a matrix, one for each column: gradients of biases and of norms' weights.
/// Rows are cut into chunks by their number alone; chunks are added in a fixed order.
namespace trireme::device::cuda {

/// The chunks of a sum over rows: at most two for each multiprocessor of the largest GPU that
/// this was tuned for, of at least 16 rows.
struct RowChunks {
  explicit RowChunks(std::int64_t rows) {
    constexpr std::int64_t most = 264;
    constexpr std::int64_t fewest_rows = 16;
    per_chunk = ceil_div(rows, most) < fewest_rows ? fewest_rows : ceil_div(rows, most);
    count = ceil_div(rows, per_chunk);
  }
  std::int64_t per_chunk = 0;
  std::int64_t count = 0;
};

struct ColumnCut {
  std::int64_t rows_of_a_chunk = 0;
  /// Blocks side by side.
  std::int64_t tiles = 0;
};

/// partials[chunk][s][column] = sum s of body over the chunk's rows. body.add<N>(row, column,
/// sums) adds one row's share; Body::count sums each have `width` columns. A block takes one chunk
/// of as many packs of columns as it has threads.
template <int N, typename Body>
__global__ void __launch_bounds__(128)
    column_partials(Body body, std::int64_t rows, std::int64_t width, ColumnCut cut,
                    simt::Global<float> partials) {
  const auto place = divide(simt::block(), cut.tiles);
  const auto chunk = place.whole;
  const auto column = (place.rest * simt::threads() + simt::thread()) * N;
  if (column >= width) return;
  Floats<N> sums[Body::count];
  for (int s = 0; s < Body::count; ++s) {
    for (int i = 0; i < N; ++i) sums[s][i] = 0.0F;
  }
  const auto begin = chunk * cut.rows_of_a_chunk;
  const auto end = begin + cut.rows_of_a_chunk < rows ? begin + cut.rows_of_a_chunk : rows;
  for (auto row = begin; row < end; ++row) body.template add<N>(row, column, sums);
  for (int s = 0; s < Body::count; ++s) {
    store_floats<N>(partials, (chunk * Body::count + s) * width + column, sums[s]);
  }
}

struct PartialSums {
  std::int64_t chunks = 0;
  /// Sums of each chunk, one after the other.
  std::int64_t count = 0;
  std::int64_t width = 0;
};

/// target[column] += sum over chunks of partials[chunk][which][column]. A block takes 32 columns;
/// each of its 32 warps every thirty-second chunk, so that a few hundred of them are read at once:
/// after a norm's backward there is nothing else for the GPU to do.
template <int threads>
__global__ void __launch_bounds__(threads)
    add_partials(simt::Global<const float> partials, PartialSums of, std::int64_t which,
                 simt::Global<float> target) {
  constexpr int warps = threads / simt::warp_size;
  __shared__ simt::Shared<float, warps * simt::warp_size> sums;
  const auto column = simt::block() * simt::warp_size + simt::lane();
  float sum = 0.0F;
  if (column < of.width) {
    for (std::int64_t chunk = simt::warp(); chunk < of.chunks; chunk += warps) {
      sum += partials.load((chunk * of.count + which) * of.width + column);
    }
  }
  sums.store(simt::thread(), sum);
  simt::sync();
  if (simt::warp() != 0 || column >= of.width) return;
  float total = 0.0F;
  for (int w = 0; w < warps; ++w) total += sums.load(w * simt::warp_size + simt::lane());
  target.store(column, target.load(column) + total);
}

/// target += sum `which` of all chunks, in their order; nothing for an empty target.
template <typename L>
void join_partials(L& launcher, const simt::Global<float>& partials, const PartialSums& sums,
                   const Tensor& target, std::int64_t which) {
  if (!target) return;
  constexpr int threads = 1024;
  launcher.launch("add_partials", &add_partials<threads>,
                  Grid{ceil_div(sums.width, simt::warp_size), threads}, partials, sums, which,
                  memory_of<float>(launcher, target));
}

/// targets[s] += sum s of body over all rows; an empty target is left out.
template <int N, typename L, typename Body, int count>
void add_columns(L& launcher, const char* name, const Body& body, const Elements& elements,
                 const Tensor (&targets)[count]) {
  static_assert(count == Body::count);
  if (elements.rows == 0 || elements.width == 0) return;
  constexpr int threads = 128;
  const RowChunks chunks(elements.rows);
  auto partials = launcher.template workspace<float>(chunks.count * Body::count * elements.width);
  const bool packed = elements.packed && elements.width % N == 0;
  const auto tiles = ceil_div(elements.width, packed ? threads * N : threads);
  const ColumnCut cut{chunks.per_chunk, tiles};
  const Grid grid{chunks.count * tiles, threads};
  if (packed) {
    launcher.launch(name, &column_partials<N, Body>, grid, body, elements.rows, elements.width, cut,
                    partials);
  } else {
    launcher.launch(name, &column_partials<1, Body>, grid, body, elements.rows, elements.width, cut,
                    partials);
  }
  for (int s = 0; s < count; ++s) {
    join_partials(launcher, partials, {chunks.count, count, elements.width}, targets[s], s);
  }
}

template <typename T>
struct PlainColumns {
  static constexpr int count = 1;
  Matrix<const T> x;

  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N> (&sums)[1]) const {
    const auto values = load_floats<N>(x.row(row), column);
    for (int i = 0; i < N; ++i) sums[0][i] += values[i];
  }
};

template <typename L>
void run(L& launcher, const AddColumnSums& operation) {
  const auto& [x, sums] = operation;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    add_columns<pack_size<T>>(launcher, "column_sums",
                              PlainColumns<T>{matrix_of<const T>(launcher, x)},
                              {rows.count(), rows.width(), packable(x, pack_size<T>)}, {sums});
  });
}

template <typename T, typename Y>
struct AddBiasBody {
  simt::Global<const T> bias;
  Matrix<Y> y;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto offset = load_floats<N>(bias, column);
    auto v = load_floats<N>(y.row(row), column);
    for (int i = 0; i < N; ++i) v[i] += offset[i];
    store_floats<N>(y.row(row), column, v);
  }
};

template <typename T, typename L>
void add_bias_of(L& launcher, const Tensor& bias, const Tensor& y) {
  const Rows rows(y);
  with_type(y.dtype(), [&](auto element) {
    using Y = decltype(element);
    if constexpr (sizeof(Y) < sizeof(T)) {
      TRIREME_EXPECT(false, "bias " + bias.text() + " of " + y.text());
    } else {
      constexpr int pack = pack_size<T>;
      run_elements<pack>(
          launcher, "add_bias", {rows.count(), rows.width(), all_packable(pack, bias, y)},
          AddBiasBody<T, Y>{memory_of<const T>(launcher, bias), matrix_of<Y>(launcher, y)});
    }
  });
}

template <typename L>
void run(L& launcher, const AddBias& operation) {
  const auto& [bias, y] = operation;
  with_type(bias.dtype(), [&](auto element) { add_bias_of<decltype(element)>(launcher, bias, y); });
}

}  // namespace trireme::device::cuda
