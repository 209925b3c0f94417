#pragma once

#include "device/rows.hpp"
#include "simt.hpp"

#include <cstdint>
#include <type_traits>

namespace trireme::device::cuda {

/// The rows of a tensor, as a kernel sees them; an absent operand has no data.
template <typename T>
struct Matrix {
  simt::Global<T> data;
  Rows rows{Tensor()};

  __device__ simt::Global<T> row(std::int64_t index) const { return data.from(rows.offset(index)); }
};

/// Elements of one 16-byte access.
template <typename T>
constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

template <int N>
using Floats = simt::Pack<float, N>;

template <int N, typename T>
__device__ Floats<N> load_floats(const simt::Global<T>& row, std::int64_t column) {
  const auto pack = row.template load_pack<N>(column);
  Floats<N> values;
  for (int i = 0; i < N; ++i) values[i] = simt::widen(pack[i]);
  return values;
}

template <int N, typename T>
__device__ void store_floats(const simt::Global<T>& row, std::int64_t column,
                             const Floats<N>& values) {
  simt::Pack<T, N> pack;
  for (int i = 0; i < N; ++i) pack[i] = simt::narrow<T>(values[i]);
  row.template store_pack<N>(column, pack);
}

}  // namespace trireme::device::cuda
