// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/activations.cuh"
#include "device/cuda/kernels/reduce.cuh"

namespace trireme::device::cuda {

template <typename T>
struct FillRows {
  Matrix<T> x;
  float value;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    Floats<N> values;
    for (int i = 0; i < N; ++i) values[i] = value;
    store_floats<N>(x.row(row), column, values);
  }
};

template <typename From, typename To>
struct CopyRows {
  Matrix<const From> from;
  Matrix<To> to;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    if constexpr (std::is_same_v<From, To>) {
      // Bits, not numbers: i32 passes too.
      to.row(row).template store_pack<N>(column, from.row(row).template load_pack<N>(column));
    } else {
      store_floats<N>(to.row(row), column, load_floats<N>(from.row(row), column));
    }
  }
};

/// z = x + y; `Sum` is float for accumulation.
template <typename T, typename Sum>
struct AddRows {
  Matrix<const T> x;
  Matrix<const Sum> y;
  Matrix<Sum> z;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    auto v = load_floats<N>(x.row(row), column);
    const auto other = load_floats<N>(y.row(row), column);
    for (int i = 0; i < N; ++i) v[i] += other[i];
    store_floats<N>(z.row(row), column, v);
  }
};

/// Elements of one partial sum, whatever the GPU.
constexpr std::int64_t sum_chunk = 16384;

/// partials[block] = sum over the block's chunk of x, or of its squares. A thread takes four
/// neighbours at a time, in one access where they are packed: the order of the sum is the same.
template <bool squares, bool packed>
__global__ void __launch_bounds__(256)
    sum_chunks(Matrix<const float> x, std::int64_t count, simt::Global<double> partials) {
  const auto width = x.rows.width();
  const auto begin = simt::block() * sum_chunk;
  const auto end = begin + sum_chunk < count ? begin + sum_chunk : count;
  double total[1] = {0.0};
  const auto take = [&](float number) {
    const auto value = static_cast<double>(number);
    total[0] += squares ? value * value : value;
  };
  for (auto index = begin + 4 * simt::thread(); index < end; index += 4 * simt::threads()) {
    if (packed && index + 4 <= end) {
      const auto values = x.data.template load_pack<4>(index);
      for (int i = 0; i < 4; ++i) take(values[i]);
      continue;
    }
    for (auto single = index; single < index + 4 && single < end; ++single) {
      const auto place = width == count ? Quotient{0, single} : divide(single, width);
      take(x.row(place.whole).load(place.rest));
    }
  }
  block_sums(total);
  if (simt::thread() == 0) partials.store(simt::block(), total[0]);
}

/// Sum of the partial sums, by one block.
template <int threads>
__global__ void __launch_bounds__(threads)
    sum_partials(simt::Global<const double> partials, std::int64_t count,
                 simt::Global<double> result) {
  double total[1] = {0.0};
  for (std::int64_t i = simt::thread(); i < count; i += simt::threads()) {
    total[0] += partials.load(i);
  }
  block_sums(total);
  if (simt::thread() == 0) result.store(0, total[0]);
}

template <bool squares, typename L>
void sum_into(L& launcher, const Tensor& x, const simt::Global<double>& result) {
  const auto count = x.element_count();
  const auto chunks = ceil_div(count, sum_chunk);
  // A single block's partial sum is the whole sum.
  auto partials =
      chunks == 1 ? result : launcher.template workspace<double>(std::max<std::int64_t>(chunks, 1));
  TRIREME_EXPECT(x.contiguous() || count <= largest_dividend,
                 "a sum over strided rows takes at most 2^32 numbers");
  if (count > 0) {
    const auto from = matrix_of<const float>(launcher, as_run(x, x.contiguous()));
    const auto kernel =
        x.contiguous() && packable(x, 4) ? &sum_chunks<squares, true> : &sum_chunks<squares, false>;
    launcher.launch("sum_chunks", kernel, Grid{chunks, 256}, from, count, partials);
  }
  if (chunks == 1) return;
  launcher.launch("sum_partials", &sum_partials<256>, Grid{1, 256}, partials, chunks, result);
}

/// partials[block] = what the block's elements add to the hash.
template <typename T>
__global__ void __launch_bounds__(256)
    hash_elements(Matrix<const T> x, std::int64_t count, simt::Global<std::uint64_t> partials) {
  const auto width = x.rows.width();
  std::uint64_t total[1] = {0};
  auto index = simt::block() * simt::threads() + simt::thread();
  for (; index < count; index += simt::blocks() * simt::threads()) {
    const auto place = width == count ? Quotient{0, index} : divide(index, width);
    total[0] += hash_term(x.row(place.whole).load(place.rest), static_cast<std::uint64_t>(index));
  }
  block_sums(total);
  if (simt::thread() == 0) partials.store(simt::block(), total[0]);
}

/// One block: hash [2] = the sum of all partials, low word first.
__global__ inline void __launch_bounds__(256)
    join_hashes(simt::Global<const std::uint64_t> partials, std::int64_t count,
                simt::Global<std::int32_t> hash) {
  std::uint64_t total[1] = {0};
  for (std::int64_t i = simt::thread(); i < count; i += simt::threads()) {
    total[0] += partials.load(i);
  }
  block_sums(total);
  if (simt::thread() != 0) return;
  hash.store(0, static_cast<std::int32_t>(total[0]));
  hash.store(1, static_cast<std::int32_t>(total[0] >> 32U));
}

template <typename L>
void run(L& launcher, const HashBits& operation) {
  const auto& [x, hash] = operation;
  const auto count = x.element_count();
  TRIREME_EXPECT(x.contiguous() || count <= largest_dividend,
                 "a hash over strided rows takes at most 2^32 numbers");
  const auto grid = grid_for(launcher, count, 1024, 256);
  const auto partials = launcher.template workspace<std::uint64_t>(grid.blocks);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch("hash_elements", &hash_elements<T>, grid,
                    matrix_of<const T>(launcher, as_run(x, x.contiguous())), count, partials);
  });
  launcher.launch("join_hashes", &join_hashes, Grid{1, 256}, partials, grid.blocks,
                  simt::Global<std::int32_t>(hash.i32()));
}

template <bool squares, typename L>
double sum_of(L& launcher, const Tensor& x) {
  auto result = launcher.template workspace<double>(1);
  sum_into<squares>(launcher, x, result);
  return launcher.read_back(result);
}

template <typename L>
double sum_of_squares(L& launcher, const Tensor& x) {
  return sum_of<true>(launcher, x);
}

template <typename L>
double sum(L& launcher, const Tensor& x) {
  return sum_of<false>(launcher, x);
}

template <typename L>
void start_sum_of_squares(L& launcher, const Tensor& x) {
  sum_into<true>(launcher, x, launcher.next_answer());
}

template <typename L>
void start_sum(L& launcher, const Tensor& x) {
  sum_into<false>(launcher, x, launcher.next_answer());
}

template <typename L>
void run(L& launcher, const Fill& operation) {
  const auto& [x, value] = operation;
  const Tensor to = as_run(x, all_contiguous(x));
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(launcher, "fill", elements_of(pack_size<T>, to),
                               FillRows<T>{matrix_of<T>(launcher, to), value});
  });
}

template <typename From, typename To, typename L>
void copy_as(L& launcher, const Tensor& from, const Tensor& to) {
  constexpr int pack = pack_size < From >> pack_size<To> ? pack_size<From> : pack_size<To>;
  run_elements<pack>(
      launcher, "copy", elements_of(pack, from, to),
      CopyRows<From, To>{matrix_of<const From>(launcher, from), matrix_of<To>(launcher, to)});
}

template <typename L>
void run(L& launcher, const Copy& operation) {
  const auto& [from, to] = operation;
  const bool flat = all_contiguous(from, to);
  const Tensor source = as_run(from, flat);
  const Tensor place = as_run(to, flat);
  if (from.dtype() == DType::i32) {
    const Matrix<const std::int32_t> integers{tokens_of(launcher, source), RowMap(Rows(source))};
    const Matrix<std::int32_t> copies{simt::Global<std::int32_t>(place.i32()), RowMap(Rows(place))};
    run_elements<4>(launcher, "copy", elements_of(4, source, place),
                    CopyRows<std::int32_t, std::int32_t>{integers, copies});
    return;
  }
  with_type(from.dtype(), [&](auto in) {
    with_type(to.dtype(),
              [&](auto out) { copy_as<decltype(in), decltype(out)>(launcher, source, place); });
  });
}

template <typename T>
using AddAlike = AddRows<T, T>;

template <typename L>
void run(L& launcher, const Add& operation) {
  const auto& [x, y, z] = operation;
  run_alike<AddAlike>(launcher, "add", std::array{x, y}, std::array{z});
}

template <typename L>
void run(L& launcher, const Accumulate& operation) {
  const auto& [x, sum] = operation;
  const bool flat = all_contiguous(x, sum);
  const Tensor from = as_run(x, flat);
  const Tensor to = as_run(sum, flat);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "accumulate", elements_of(pack_size<T>, from, to),
        AddRows<T, float>{matrix_of<const T>(launcher, from), matrix_of<const float>(launcher, to),
                          matrix_of<float>(launcher, to)});
  });
}

}  // namespace trireme::device::cuda
