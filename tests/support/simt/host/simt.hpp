// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"
#include "trireme/device/dtype.hpp"

#include "support/simt/executor.hpp"
#include "support/simt/kernel_entry.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

// CUDA's own words in kernels. The threads of a block are fibers of one system thread, so what all
// of them share is a static variable.
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

/// The words of src/device/cuda/kernels/gpu/simt.hpp, with every access and every meeting checked.
namespace trireme::device::simt {

constexpr int warp_size = 32;

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];

  T& operator[](int index) { return values[index]; }
  const T& operator[](int index) const { return values[index]; }
};

inline int thread() {
  return Executor::here().thread();
}
inline int threads() {
  return Executor::here().threads();
}
inline std::int64_t block() {
  return Executor::here().block();
}
inline std::int64_t blocks() {
  return Executor::here().blocks();
}
inline int lane() {
  return thread() % warp_size;
}
inline int warp() {
  return thread() / warp_size;
}

inline void sync(const Place& where = Place::current()) {
  Executor::here().meet_block(Meeting::block_sync, false, where);
}
inline bool block_any(bool condition, const Place& where = Place::current()) {
  return Executor::here().meet_block(Meeting::block_any, condition, where);
}
inline void sync_warp(const Place& where = Place::current()) {
  Executor::here().meet_warp(Meeting::warp_sync, 0, where);
}

template <typename T>
T shuffle(T value, int from, const Place& where = Place::current()) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  auto& executor = Executor::here();
  if (from < 0 || from >= warp_size) executor.fail(where, "shuffles from a lane that no warp has");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  const auto& words = executor.meet_warp(Meeting::shuffle, word, where);
  std::memcpy(&value, &words[static_cast<std::size_t>(from)], sizeof(T));
  return value;
}
template <typename T>
T shuffle_xor(T value, int mask, const Place& where = Place::current()) {
  return shuffle(value, lane() ^ mask, where);
}
inline std::uint32_t ballot(bool condition, const Place& where = Place::current()) {
  const auto& words = Executor::here().meet_warp(Meeting::ballot, condition ? 1 : 0, where);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < words.size(); ++i) bits |= static_cast<std::uint32_t>(words[i]) << i;
  return bits;
}

inline int set_bits(std::uint32_t word) {
  return std::popcount(word);
}

template <typename T>
class Global {
 public:
  using Element = std::remove_const_t<T>;

  Global() = default;
  /// Throws if the operation under way has no such memory.
  explicit Global(T* data) : data_(data), allocation_(Executor::here().memory().find(data)) {}

  /// The same memory, only to be read.
  template <typename U>
  requires std::is_same_v<const U, T> Global(
      const Global<U>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data_), offset_(other.offset_), allocation_(other.allocation_) {}
  /// For the host, after a launch.
  T* host() const { return data_ + offset_; }

  explicit operator bool() const { return data_ != nullptr; }
  Global from(std::int64_t offset) const {
    Global moved = *this;
    moved.offset_ += offset;
    return moved;
  }

  Element load(std::int64_t index, const Place& where = Place::current()) const {
    return *static_cast<const Element*>(check(index, 1, Access::read, where));
  }
  void store(std::int64_t index, Element value, const Place& where = Place::current()) const {
    *static_cast<Element*>(check(index, 1, Access::write, where)) = value;
  }
  template <int N>
  Pack<Element, N> load_pack(std::int64_t index, const Place& where = Place::current()) const {
    return *static_cast<const Pack<Element, N>*>(check(index, N, Access::read, where));
  }
  template <int N>
  void store_pack(std::int64_t index, const Pack<Element, N>& pack,
                  const Place& where = Place::current()) const {
    *static_cast<Pack<Element, N>*>(check(index, N, Access::write, where)) = pack;
  }
  template <int N>
  int past_pack() const {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(data_ + offset_) / sizeof(T) % N);
  }

 private:
  template <typename>
  friend class Global;

  void* check(std::int64_t index, int count, Access access, const Place& where) const {
    if (allocation_ == nullptr) {
      Executor::here().fail(where, "touches an operand that it was not given");
    }
    return allocation_->check(data_, offset_ + index, count, sizeof(T), access, where);
  }

  T* data_ = nullptr;
  std::int64_t offset_ = 0;
  Target* allocation_ = nullptr;
};

template <typename T, int count>
class Shared {
 public:
  explicit Shared(const Place& declared = Place::current()) : declared_(declared) {}

  T load(int index, const Place& where = Place::current()) const {
    check(index, 1, Access::read, where);
    return data_[static_cast<std::size_t>(index)];
  }
  void store(int index, T value, const Place& where = Place::current()) {
    check(index, 1, Access::write, where);
    data_[static_cast<std::size_t>(index)] = value;
  }
  template <int N>
  Pack<T, N> load_pack(int index, const Place& where = Place::current()) const {
    check(index, N, Access::read, where);
    Pack<T, N> pack{};
    std::memcpy(&pack, &data_[static_cast<std::size_t>(index)], sizeof(pack));
    return pack;
  }
  template <int N>
  void store_pack(int index, const Pack<T, N>& pack, const Place& where = Place::current()) {
    check(index, N, Access::write, where);
    std::memcpy(&data_[static_cast<std::size_t>(index)], &pack, sizeof(pack));
  }

 private:
  std::string describe(int index) const {
    return base::format("element {} of the shared array of {} declared in line {}", index, count,
                        declared_.line());
  }
  void check(int index, int length, Access access, const Place& where) const {
    auto& executor = Executor::here();
    const char* verb = access == Access::read ? "reads" : "writes";
    if (index < 0 || index + length > count) {
      executor.fail(where, base::format("{} out of bounds: {}", verb, describe(index)));
    }
    if (index % length != 0) {
      executor.fail(where, base::format("{} {} elements together (misaligned): {}", verb, length,
                                        describe(index)));
    }
    // Every block has its own.
    auto actor = executor.actor();
    actor.launch = actor.block_run;
    for (int element = index; element < index + length; ++element) {
      auto& marks = marks_[static_cast<std::size_t>(element)];
      if (access == Access::read && !marks.written_in(actor.block_run)) {
        executor.fail(where, base::format("reads what was never written: {}", describe(element)));
      }
      const auto conflict =
          access == Access::read ? marks.read(actor, where) : marks.write(actor, where);
      if (conflict) executor.fail_race(where, access, *conflict, describe(element));
    }
  }

  Place declared_;
  std::array<T, count> data_{};
  mutable std::array<Marks, count> marks_{};
};

inline float exp2_near(float x) {
  return std::exp2(x);
}
inline float reciprocal_near(float x) {
  return 1.0F / x;
}

inline float widen(float value) {
  return value;
}
inline float widen(Bf16 value) {
  return to_float(value);
}
inline float widen(E4m3 value) {
  return to_float(value);
}

template <typename T, int N>
float widen(const Pack<T, N>& pack, int index) {
  return widen(pack[index]);
}

template <typename T>
T narrow(float value);
template <>
inline float narrow<float>(float value) {
  return value;
}
template <>
inline Bf16 narrow<Bf16>(float value) {
  return to_bf16(value);
}
template <>
inline E4m3 narrow<E4m3>(float value) {
  return to_e4m3(value);
}

}  // namespace trireme::device::simt
