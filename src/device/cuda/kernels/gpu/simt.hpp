// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Primitives that kernels are written in, on a GPU: each is an instruction or two. The tests'
/// executor (tests/support/simt/host/simt.hpp) defines the same ones with checks; the include path
/// decides which of the two a kernel sees.
namespace trireme::device::simt {

constexpr int warp_size = 32;

/// Neighbouring elements that are moved together, at a multiple of their whole size.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];

  __device__ T& operator[](int index) { return values[index]; }
  __device__ const T& operator[](int index) const { return values[index]; }
};

/// Type that one instruction moves. The compiler splits the copy of a struct and writes its
/// elements one by one where its heuristics prefer that, which is slower.
template <std::size_t bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};
template <std::size_t bytes>
using Word = typename WordOf<bytes>::Type;

// Indices of a thread. Blocks have one dimension and whole warps.

__device__ inline int thread() {
  return static_cast<int>(threadIdx.x);
}
__device__ inline int threads() {
  return static_cast<int>(blockDim.x);
}
__device__ inline std::int64_t block() {
  return blockIdx.x;
}
__device__ inline std::int64_t blocks() {
  return gridDim.x;
}
__device__ inline int lane() {
  return thread() % warp_size;
}
__device__ inline int warp() {
  return thread() / warp_size;
}

// Barriers. All threads of the block, or of the warp, come to the same one. Shared and global
// memory written before `sync` and `sync_warp` is seen after them; the others order nothing.

__device__ inline void sync() {
  __syncthreads();
}
/// True if the condition holds in any thread of the block. A barrier that orders memory, as `sync`
/// does.
__device__ inline bool block_any(bool condition) {
  return __syncthreads_or(condition ? 1 : 0) != 0;
}
__device__ inline void sync_warp() {
  __syncwarp();
}
template <typename T>
__device__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFU, value, mask);
}
template <typename T>
__device__ T shuffle(T value, int from) {
  return __shfl_sync(0xFFFFFFFFU, value, from);
}
/// Mask whose bit l is the condition of lane l.
__device__ inline std::uint32_t ballot(bool condition) {
  return __ballot_sync(0xFFFFFFFFU, condition ? 1 : 0);
}

/// Number of bits of a word that are 1.
__device__ inline int set_bits(std::uint32_t word) {
  return __popc(word);
}

template <typename... Parameters>
const void* kernel_address(void (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Memory of the GPU, from some element on.
template <typename T>
class Global {
 public:
  using Element = std::remove_const_t<T>;

  Global() = default;
  explicit Global(T* data) : data_(data) {}
  /// The same memory, only to be read.
  template <typename U>
  requires std::is_same_v<const U, T> Global(
      const Global<U>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.host()) {}
  /// The address, which the host cannot follow.
  T* host() const { return data_; }

  __device__ explicit operator bool() const { return data_ != nullptr; }
  __device__ Global from(std::int64_t offset) const { return Global(data_ + offset, 0); }

  __device__ Element load(std::int64_t index) const { return data_[index]; }
  __device__ void store(std::int64_t index, Element value) const { data_[index] = value; }
  template <int N>
  __device__ Pack<Element, N> load_pack(std::int64_t index) const {
    using Whole = Word<sizeof(Pack<Element, N>)>;
    const auto word = *reinterpret_cast<const Whole*>(data_ + index);
    Pack<Element, N> pack;
    memcpy(&pack, &word, sizeof(pack));
    return pack;
  }
  template <int N>
  __device__ void store_pack(std::int64_t index, const Pack<Element, N>& pack) const {
    using Whole = Word<sizeof(Pack<Element, N>)>;
    Whole word;
    memcpy(&word, &pack, sizeof(pack));
    *reinterpret_cast<Whole*>(data_ + index) = word;
  }
  /// Elements from the last place where N of them can be moved together.
  template <int N>
  __device__ int past_pack() const {
    return static_cast<int>(reinterpret_cast<std::size_t>(data_) / sizeof(T) % N);
  }

 private:
  __device__ Global(T* data, int) : data_(data) {}

  T* data_ = nullptr;
};

/// Memory of a block: declared `__shared__` inside a kernel.
template <typename T, int count>
class Shared {
 public:
  __device__ T load(int index) const { return data_[index]; }
  __device__ void store(int index, T value) { data_[index] = value; }
  template <int N>
  __device__ Pack<T, N> load_pack(int index) const {
    return *reinterpret_cast<const Pack<T, N>*>(data_ + index);
  }
  template <int N>
  __device__ void store_pack(int index, const Pack<T, N>& pack) {
    *reinterpret_cast<Pack<T, N>*>(data_ + index) = pack;
  }

 private:
  alignas(16) T data_[count];
};

// Functions that kernels bound by memory call for every element: one instruction each, wrong by two
// of the last bits at most, where the language's own take eight and more. Numbers below the
// smallest normal one count as 0.

/// 2 to the power of x.
__device__ inline float exp2_near(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
/// 1 / x.
__device__ inline float reciprocal_near(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline float widen(float value) {
  return value;
}
__device__ inline float widen(Bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ inline float widen(E4m3 value) {
  return to_float(value);
}

/// Float of one of several neighbours. The upper of a word's two bf16 numbers is the word with its
/// lower half masked, without extracting its 16 bits first.
template <typename T, int N>
__device__ float widen(const Pack<T, N>& pack, int index) {
  if constexpr (std::is_same_v<T, Bf16> && N % 2 == 0) {
    unsigned word = 0;
    memcpy(&word, &pack.values[index / 2 * 2], sizeof(word));
    return __uint_as_float(index % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
  } else {
    return widen(pack[index]);
  }
}

template <typename T>
__device__ T narrow(float value);
template <>
__device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__device__ inline Bf16 narrow<Bf16>(float value) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
}
template <>
__device__ inline E4m3 narrow<E4m3>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  // One instruction rounds, saturates and takes NaN as to_e4m3 does; other ways need twenty.
  unsigned short pair = 0;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0F), "f"(value));
  return {static_cast<std::uint8_t>(pair & 0xFFU)};
#else
  return to_e4m3(value);
#endif
}

}  // namespace trireme::device::simt
