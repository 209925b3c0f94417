// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl_result.hpp"

#include <array>
#include <climits>
#include <cstddef>

/// The part of NCCL's C interface that is used, as of version 2.18. Declared here because the
/// library is loaded at run time, not linked: this is built with and without it. Where a build
/// finds nccl.h, tests/unit/comm compares the two.
namespace trireme::comm::nccl {

/// ncclDataType_t.
enum class DataType : int { i32 = 2, f32 = 7, bf16 = 9 };

/// ncclRedOp_t.
enum class Reduction : int { sum = 0, max = 2 };

/// ncclUniqueId.
struct UniqueId {
  std::array<char, 128> bytes{};
};

/// ncclComm.
struct Comm;

/// The color of a rank that goes into no part of a split.
inline constexpr int no_color = -1;
inline constexpr int oldest_version = 21800;
inline constexpr int undefined = INT_MIN;

/// ncclConfig_t of version 2.18; newer libraries detect the missing fields by size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = oldest_version;
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int min_ctas = undefined;
  int max_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
  /// Newer libraries have a setting here.
  int nothing = undefined;
};

/// ncclWindow_vidmem.
struct Window;
/// NCCL_WIN_COLL_SYMMETRIC: every rank's window has the same size, and collectives may read and
/// write those of others.
inline constexpr int symmetric_window = 1;
inline constexpr std::size_t window_alignment = 4096;

/// The library's functions; what a version lacks is null. Streams are cudaStream_t.
struct Api {
  Result (*get_version)(int* version) = nullptr;
  Result (*get_unique_id)(UniqueId* id) = nullptr;
  Result (*init_rank)(Comm** comm, int ranks, UniqueId id, int rank, Config* config) = nullptr;
  /// Function of NCCL 2.23 and later.
  Result (*init_rank_scalable)(Comm** comm, int ranks, int rank, int ids, UniqueId* all,
                               Config* config) = nullptr;
  Result (*split)(Comm* comm, int color, int key, Comm** part, Config* config) = nullptr;
  Result (*finalize)(Comm* comm) = nullptr;
  Result (*destroy)(Comm* comm) = nullptr;
  Result (*abort)(Comm* comm) = nullptr;
  Result (*get_async_error)(Comm* comm, Result* error) = nullptr;
  const char* (*get_error_string)(Result result) = nullptr;
  const char* (*get_last_error)(Comm* comm) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*all_reduce)(const void* from, void* to, std::size_t count, DataType type, Reduction op,
                       Comm* comm, void* stream) = nullptr;
  Result (*reduce_scatter)(const void* from, void* to, std::size_t part_count, DataType type,
                           Reduction op, Comm* comm, void* stream) = nullptr;
  Result (*all_gather)(const void* from, void* to, std::size_t part_count, DataType type,
                       Comm* comm, void* stream) = nullptr;
  Result (*reduce)(const void* from, void* to, std::size_t count, DataType type, Reduction op,
                   int root, Comm* comm, void* stream) = nullptr;
  Result (*broadcast)(const void* from, void* to, std::size_t count, DataType type, int root,
                      Comm* comm, void* stream) = nullptr;
  Result (*send)(const void* from, std::size_t count, DataType type, int peer, Comm* comm,
                 void* stream) = nullptr;
  Result (*receive)(void* to, std::size_t count, DataType type, int peer, Comm* comm,
                    void* stream) = nullptr;
  /// Functions of NCCL 2.19 and later.
  Result (*register_buffer)(Comm* comm, void* data, std::size_t size, void** handle) = nullptr;
  Result (*deregister_buffer)(Comm* comm, void* handle) = nullptr;
  Result (*allocate)(void** data, std::size_t size) = nullptr;
  Result (*free)(void* data) = nullptr;
  /// Functions of NCCL 2.27 and later.
  Result (*register_window)(Comm* comm, void* data, std::size_t size, Window** window,
                            int flags) = nullptr;
  Result (*deregister_window)(Comm* comm, Window* window) = nullptr;
};

}  // namespace trireme::comm::nccl
