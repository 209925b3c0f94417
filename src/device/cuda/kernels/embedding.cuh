// SPDX-License-Identifier: Apache-2.0
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
struct AddPositionsBody {
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

/// Bit i: token first + i is `token` and counts, in [begin, end). N of them are read together.
template <int N>
__device__ std::uint32_t equal_tokens(const simt::Global<const std::int32_t>& tokens,
                                      std::int64_t first, std::int64_t begin, std::int64_t end,
                                      std::int32_t token) {
  if (first >= end) return 0;
  simt::Pack<std::int32_t, N> pack{};
  if (first + N <= end) {
    pack = tokens.load_pack<N>(first);
  } else {
    for (int i = 0; i < N; ++i) {
      if (first + i < end) pack[i] = tokens.load(first + i);
    }
  }
  std::uint32_t bits = 0;
  for (int i = 0; i < N; ++i) {
    const bool counts = first + i >= begin && first + i < end;
    if (counts && pack[i] == token) bits |= 1U << i;
  }
  return bits;
}

/// Offsets of the rows whose bits are set, N bits for each thread's rows from `first` on, written
/// to `list` in their order. Returns their number, for every thread. A barrier of the block.
template <int N, int threads>
__device__ int list_rows(std::uint32_t bits, std::int64_t first, const RowMap& rows,
                         simt::Shared<std::int64_t, N * threads>& list) {
  constexpr int warps = threads / simt::warp_size;
  __shared__ simt::Shared<std::uint32_t, N * warps> votes;
  for (int i = 0; i < N; ++i) {
    const auto vote = simt::ballot((bits >> i & 1U) != 0);
    if (simt::lane() == 0) votes.store(simt::warp() * N + i, vote);
  }
  simt::sync();
  int all = 0;
  int before = 0;
  for (int w = 0; w < warps; ++w) {
    for (int i = 0; i < N; ++i) {
      const auto vote = votes.load(w * N + i);
      if (w == simt::warp()) before += simt::set_bits(vote & ((1U << simt::lane()) - 1));
      if (w < simt::warp()) before += simt::set_bits(vote);
      all += simt::set_bits(vote);
    }
  }
  for (int i = 0; i < N; ++i) {
    if ((bits >> i & 1U) != 0) list.store(before++, rows.offset(first + i));
  }
  simt::sync();
  return all;
}

/// d_table[token] += all of the token's rows of d_out, in their order. A row's block owns its
/// token when no earlier row has it; the owner finds the later rows and adds them, N columns a
/// thread. Every owner looks at all tokens, N a thread: 32768 of them are 32 steps of a block.
template <typename T, int N, int threads>
__global__ void __launch_bounds__(threads)
    scatter_rows(simt::Global<const std::int32_t> tokens, Matrix<const T> d_out, std::int64_t rows,
                 std::int64_t first_token, Matrix<float> d_table) {
  __shared__ simt::Shared<std::int64_t, N * threads> list;
  constexpr std::int64_t step = N * threads;
  const auto own_row = simt::block();
  const auto token = tokens.load(own_row);
  const auto local = token - first_token;
  if (local < 0 || local >= d_table.rows.count()) return;
  const auto of_thread = std::int64_t{simt::thread()} * N;
  for (std::int64_t base = 0; base < own_row; base += step) {
    if (simt::block_any(equal_tokens<N>(tokens, base + of_thread, 0, own_row, token) != 0)) return;
  }
  const auto place = d_table.row(local);
  const auto width = d_out.rows.width();
  for (auto base = own_row / N * N; base < rows; base += step) {
    const auto bits = equal_tokens<N>(tokens, base + of_thread, own_row, rows, token);
    // The barrier also keeps the list until all have read it.
    if (!simt::block_any(bits != 0)) continue;
    const int found = list_rows<N, threads>(bits, base + of_thread, d_out.rows, list);
    for (auto c = of_thread; c < width; c += step) {
      auto sum = load_floats<N>(place, c);
      for (int f = 0; f < found; ++f) {
        const auto value = load_floats<N>(d_out.data.from(list.load(f)), c);
        for (int i = 0; i < N; ++i) sum[i] += value[i];
      }
      store_floats<N>(place, c, sum);
    }
  }
}

template <typename L>
void run(L& launcher, const EmbeddingForward& operation) {
  const auto& [tokens, table, first_token, out] = operation;
  const Rows to(out);
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
void run(L& launcher, const EmbeddingBackward& operation) {
  const auto& [tokens, d_out, first_token, d_table] = operation;
  const Rows from(d_out);
  if (from.count() == 0) return;
  with_type(d_out.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int threads = 256;
    constexpr int pack = 4;
    const bool packed = from.width() % pack == 0 && all_packable(pack, tokens, d_out, d_table);
    launcher.launch("embedding_backward",
                    packed ? &scatter_rows<T, pack, threads> : &scatter_rows<T, 1, threads>,
                    Grid{from.count(), threads}, tokens_of(launcher, tokens),
                    matrix_of<const T>(launcher, d_out), from.count(), first_token,
                    matrix_of<float>(launcher, d_table));
  });
}

template <typename L>
void run(L& launcher, const AddPositions& operation) {
  const auto& [x, table, seq, first_position] = operation;
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "add_positions",
        {rows.count(), rows.width(), all_packable(pack_size<T>, x, table)},
        AddPositionsBody<T>{matrix_of<T>(launcher, x), matrix_of<const T>(launcher, table), seq,
                            first_position});
  });
}

template <typename L>
void run(L& launcher, const AddPositionsBackward& operation) {
  const auto& [dx, seq, d_table] = operation;
  const Rows rows(dx);
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
