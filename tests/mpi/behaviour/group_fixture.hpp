// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/philox.hpp"
#include "trireme/comm/process_group.hpp"

#include "support/fake_nccl/group.hpp"
#include "support/mpi/world.hpp"
#include "support/simulated_gpu/group.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <vector>

namespace trireme::testing {

using comm::ProcessGroup;
using comm::ReduceOp;
using device::Bf16;
using device::DType;
using device::Tensor;

/// The server of a group: a backend of host memory, or copies from and to a simulated GPU over one,
/// or what calls NCCL, with a stand-in for the library: waited for, or joined and left to the
/// device. Shared memory is filled by ordinary stores, or past the caches.
enum class Backend {
  mpi,
  shared,
  shared_streaming,
  library,
  staged_mpi,
  staged_shared,
  nccl,
  nccl_joined
};

inline const char* name(Backend backend) {
  switch (backend) {
    case Backend::mpi:
      return "mpi";
    case Backend::shared:
      return "shared";
    case Backend::shared_streaming:
      return "shared, streaming";
    case Backend::library:
      return "library";
    case Backend::staged_mpi:
      return "staged over mpi";
    case Backend::staged_shared:
      return "staged over shared";
    case Backend::nccl:
      return "nccl";
    case Backend::nccl_joined:
      return "nccl, joined";
  }
  return "?";
}

/// The backends that must do everything alike.
inline constexpr std::array all_backends{
    Backend::mpi,     Backend::shared,     Backend::shared_streaming,
    Backend::library, Backend::staged_mpi, Backend::staged_shared,
    Backend::nccl,    Backend::nccl_joined};
/// Those whose sums are in the order of ranks.
inline constexpr std::array ordered_backends{Backend::mpi, Backend::shared,
                                             Backend::shared_streaming, Backend::staged_mpi,
                                             Backend::staged_shared};
/// Those whose parts of a sum are the whole sum, bit by bit.
inline constexpr std::array own_backends{
    Backend::mpi,           Backend::shared, Backend::shared_streaming, Backend::staged_mpi,
    Backend::staged_shared, Backend::nccl,   Backend::nccl_joined};
/// A rank needs no NCCL to talk to itself, and gets none.
inline bool talks_to_itself(Backend backend) {
  return backend != Backend::nccl && backend != Backend::nccl_joined;
}
/// Those of host memory.
inline constexpr std::array host_backends{comm::Backend::mpi, comm::Backend::shared,
                                          comm::Backend::library};

/// Pieces of this size cut the larger ones of edge_counts().
inline constexpr std::size_t staged_piece_bytes = 50000;

inline std::unique_ptr<ProcessGroup> group_of(const std::string& group_name,
                                              const std::vector<base::Rank>& ranks, Backend backend,
                                              double timeout_seconds = 30) {
  const auto make = [&](comm::Backend host, comm::Stores stores = comm::Stores::ordinary) {
    return mpi().make_group(group_name, ranks, {host, timeout_seconds, stores});
  };
  const Haste haste{Haste::Kind::mixed, static_cast<std::uint64_t>(mpi().world_rank().value())};
  switch (backend) {
    case Backend::mpi:
      return make(comm::Backend::mpi);
    case Backend::shared:
      return make(comm::Backend::shared);
    case Backend::shared_streaming:
      return make(comm::Backend::shared, comm::Stores::streaming);
    case Backend::library:
      return make(comm::Backend::library);
    case Backend::staged_mpi:
      return make_group_on_device(make(comm::Backend::mpi), haste, staged_piece_bytes);
    case Backend::staged_shared:
      return make_group_on_device(make(comm::Backend::shared), haste, staged_piece_bytes);
    case Backend::nccl:
      return make_fake_nccl_group(mpi(), group_name, ranks, timeout_seconds);
    case Backend::nccl_joined:
      return make_fake_nccl_group(mpi(), group_name, ranks, timeout_seconds,
                                  FakePlan{{}, Ends::joined});
  }
  return nullptr;
}

/// A deadline that tests wait for.
inline constexpr double soon_seconds = 0.7;

inline std::unique_ptr<ProcessGroup> world_of(Backend backend, double timeout_seconds = 30) {
  std::vector<base::Rank> everybody;
  for (int rank = 0; rank < mpi().world_size(); ++rank) everybody.emplace_back(rank);
  return group_of("world", everybody, backend, timeout_seconds);
}

/// Element counts at the edges of every path: nothing, less than a rank each, not divisible,
/// one message, several pieces.
inline const std::vector<std::int64_t>& edge_counts() {
  static const std::vector<std::int64_t> counts{0, 1, 2, 3, 5, 7, 64, 1023, 4099, 70001, 150001};
  return counts;
}

inline Tensor tensor_of(std::vector<float>& values) {
  return {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}};
}
inline Tensor tensor_of(std::vector<Bf16>& values) {
  return {values.data(), DType::bf16, {static_cast<std::int64_t>(values.size())}};
}
inline Tensor tensor_of(std::vector<std::int32_t>& values) {
  return {values.data(), DType::i32, {static_cast<std::int64_t>(values.size())}};
}

/// Small integers: their sums are exact in fp32, so any order gives the same.
inline float exact_value(int rank, std::int64_t index) {
  return static_cast<float>((rank + 1) * 8 + index % 13);
}
inline std::vector<float> exact_values(int rank, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = exact_value(rank, i);
  }
  return values;
}

/// Numbers of very different sizes: every order of adding them gives other bits.
inline float rough_value(int rank, std::int64_t index) {
  const auto bits =
      base::philox(7, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index));
  const float size = static_cast<float>(1U << (bits[1] % 20U));
  return (base::uniform_from_bits(bits[0]) - 0.5F) * size;
}
inline std::vector<float> rough_values(int rank, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = rough_value(rank, i);
  }
  return values;
}

/// ((0 + 1) + 2) + …, as the contract of ProcessGroup says.
inline float ordered_sum(const std::vector<base::Rank>& ranks, std::int64_t index) {
  float sum = rough_value(ranks.front().value(), index);
  for (std::size_t i = 1; i < ranks.size(); ++i) sum += rough_value(ranks[i].value(), index);
  return sum;
}

/// Equality of bits, so that NaN equals itself and -0 is not 0.
template <typename T>
std::int64_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<Bytes>(a[i]) != std::bit_cast<Bytes>(b[i]))
      return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace trireme::testing
