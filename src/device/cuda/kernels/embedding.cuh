#pragma once

#include "device/cuda/kernels/activations.cuh"

namespace trireme::device::cuda {

/// Rows of the table, or zeros for tokens of other ranks.
template <typename T>
struct GatherRows {
  simt::Global<const std::int32_t> tokens;
  Matrix<const T> table;
  Matrix<T> out;
  std::int64_t first_token = 0;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto local = tokens.load(row) - first_token;
    simt::Pack<T, N> values{};
    if (local >= 0 && local < table.rows.count()) {
      values = table.row(local).template load_pack<N>(column);
    }
    out.row(row).template store_pack<N>(column, values);
  }
};

template <typename T>
struct AddPositions {
  Matrix<T> x;
  Matrix<const T> table;
  std::int64_t seq;
  std::int64_t first_position;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    auto v = load_floats<N>(x.row(row), column);
    const auto p = load_floats<N>(table.row(first_position + divide(row, seq).rest), column);
    for (int i = 0; i < N; ++i) v[i] += p[i];
    store_floats<N>(x.row(row), column, v);
  }
};

/// One position of the table: all sequences in their order.
template <typename T>
struct SumPositions {
  Matrix<const T> dx;
  Matrix<float> d_table;
  std::int64_t seq = 1;
  std::int64_t rows = 0;

  template <int N>
  __device__ void run(std::int64_t position, std::int64_t column) const {
    auto sum = load_floats<N>(d_table.row(position), column);
    for (auto row = position; row < rows; row += seq) {
      const auto v = load_floats<N>(dx.row(row), column);
      for (int i = 0; i < N; ++i) sum[i] += v[i];
    }
    store_floats<N>(d_table.row(position), column, sum);
  }
};

/// d_table[token] += all of the token's rows of d_out, in their order. A row's block owns its
/// token when no earlier row has it; the owner finds the later rows and adds them. Comparing all
/// pairs of tokens costs less than one pass over d_out up to some tens of thousands of rows.
template <typename T>
__global__ void __launch_bounds__(256)
    scatter_rows(simt::Global<const std::int32_t> tokens, Matrix<const T> d_out, std::int64_t rows,
                 std::int64_t first_token, Matrix<float> d_table) {
  constexpr int most_warps = 8;
  __shared__ simt::Shared<std::uint32_t, most_warps> matches;
  const auto own_row = simt::block();
  const auto token = tokens.load(own_row);
  const auto local = token - first_token;
  if (local < 0 || local >= d_table.rows.count()) return;
  for (std::int64_t base = 0; base < own_row; base += simt::threads()) {
    const auto other = base + simt::thread();
    const bool earlier = other < own_row && tokens.load(other) == token;
    if (simt::block_any(earlier)) return;
  }
  const auto place = d_table.row(local);
  const auto width = d_out.rows.width();
  for (auto base = own_row; base < rows; base += simt::threads()) {
    const auto other = base + simt::thread();
    const auto found = simt::ballot(other < rows && tokens.load(other) == token);
    if (simt::lane() == 0) matches.store(simt::warp(), found);
    simt::sync();
    for (int w = 0; w < simt::threads() / simt::warp_size; ++w) {
      const auto mask = matches.load(w);
      for (int bit = 0; bit < simt::warp_size; ++bit) {
        if ((mask >> bit & 1U) == 0) continue;
        const auto source = d_out.row(base + w * simt::warp_size + bit);
        for (std::int64_t c = simt::thread(); c < width; c += simt::threads()) {
          place.store(c, place.load(c) + simt::widen(source.load(c)));
        }
      }
    }
    simt::sync();  // the next matches overwrite these
  }
}

template <typename L>
void embedding_forward(L& launcher, const Tensor& tokens, const Tensor& table,
                       std::int64_t first_token, const Tensor& out) {
  const Rows to(out);
  TRIREME_EXPECT(
      tokens.contiguous() && tokens.element_count() == to.count() &&
          Rows(table).width() == to.width(),
      "embedding: tokens " + tokens.text() + ", table " + table.text() + ", out " + out.text());
  with_type(table.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "embedding_forward",
        {to.count(), to.width(), all_packable(pack_size<T>, table, out)},
        GatherRows<T>{tokens_of(launcher, tokens), matrix_of<const T>(launcher, table),
                      matrix_of<T>(launcher, out), first_token});
  });
}

template <typename L>
void embedding_backward(L& launcher, const Tensor& tokens, const Tensor& d_out,
                        std::int64_t first_token, const Tensor& d_table) {
  const Rows from(d_out);
  TRIREME_EXPECT(tokens.contiguous() && tokens.element_count() == from.count() &&
                     from.width() == Rows(d_table).width(),
                 "embedding: tokens " + tokens.text() + ", d_out " + d_out.text() + ", d_table " +
                     d_table.text());
  if (from.count() == 0) return;
  with_type(d_out.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch("embedding_backward", &scatter_rows<T>, Grid{from.count(), 256},
                    tokens_of(launcher, tokens), matrix_of<const T>(launcher, d_out), from.count(),
                    first_token, matrix_of<float>(launcher, d_table));
  });
}

template <typename L>
void add_positions(L& launcher, const Tensor& x, const Tensor& table, std::int64_t seq,
                   std::int64_t first_position) {
  const Rows rows(x);
  const Rows positions(table);
  TRIREME_EXPECT(seq > 0 && rows.width() == positions.width() && first_position >= 0 &&
                     first_position + seq <= positions.count(),
                 "positions: x " + x.text() + ", table " + table.text());
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "add_positions",
        {rows.count(), rows.width(), all_packable(pack_size<T>, x, table)},
        AddPositions<T>{matrix_of<T>(launcher, x), matrix_of<const T>(launcher, table), seq,
                        first_position});
  });
}

template <typename L>
void add_positions_backward(L& launcher, const Tensor& dx, std::int64_t seq,
                            const Tensor& d_table) {
  const Rows rows(dx);
  const Rows positions(d_table);
  TRIREME_EXPECT(seq > 0 && rows.width() == positions.width() && seq <= positions.count(),
                 "positions: dx " + dx.text() + ", d_table " + d_table.text());
  const auto used = rows.count() < seq ? rows.count() : seq;
  with_type(dx.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int pack = pack_size<T>;
    run_elements<pack>(launcher, "add_positions_backward",
                       {used, rows.width(), all_packable(pack, dx, d_table)},
                       SumPositions<T>{matrix_of<const T>(launcher, dx),
                                       matrix_of<float>(launcher, d_table), seq, rows.count()});
  });
}

}  // namespace trireme::device::cuda
