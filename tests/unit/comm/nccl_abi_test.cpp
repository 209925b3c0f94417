// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/abi.hpp"

#include <catch2/catch.hpp>
#include <nccl.h>

#include <cstddef>

using namespace trireme::comm::nccl;

namespace {

/// Enumerations are passed as what they are made of.
template <typename Theirs, typename Ours>
constexpr bool same(Theirs theirs, Ours ours) {
  static_assert(sizeof(Theirs) == sizeof(Ours));
  return static_cast<int>(theirs) == static_cast<int>(ours);
}

}  // namespace

static_assert(same(ncclSuccess, Result::success));
static_assert(same(ncclUnhandledCudaError, Result::unhandled_cuda_error));
static_assert(same(ncclSystemError, Result::system_error));
static_assert(same(ncclInternalError, Result::internal_error));
static_assert(same(ncclInvalidArgument, Result::invalid_argument));
static_assert(same(ncclInvalidUsage, Result::invalid_usage));
static_assert(same(ncclRemoteError, Result::remote_error));
static_assert(same(ncclInProgress, Result::in_progress));
static_assert(same(ncclInt32, DataType::i32));
static_assert(same(ncclFloat32, DataType::f32));
static_assert(same(ncclBfloat16, DataType::bf16));
static_assert(same(ncclSum, Reduction::sum));
static_assert(same(ncclMax, Reduction::max));
static_assert(sizeof(ncclUniqueId) == sizeof(UniqueId));
static_assert(NCCL_SPLIT_NOCOLOR == no_color);
static_assert(offsetof(ncclConfig_t, magic) == offsetof(Config, magic));
static_assert(offsetof(ncclConfig_t, version) == offsetof(Config, version));
static_assert(offsetof(ncclConfig_t, blocking) == offsetof(Config, blocking));
static_assert(offsetof(ncclConfig_t, netName) == offsetof(Config, net_name));
static_assert(offsetof(ncclConfig_t, splitShare) == offsetof(Config, split_share));
static_assert(sizeof(ncclConfig_t) >= sizeof(Config));
#ifdef NCCL_WIN_COLL_SYMMETRIC
static_assert(NCCL_WIN_COLL_SYMMETRIC == symmetric_window);
static_assert(NCCL_WIN_REQUIRED_ALIGNMENT == window_alignment);
static_assert(sizeof(ncclWindow_t) == sizeof(Window*));
#endif

TEST_CASE("a configuration of ours begins as NCCL's own does") {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  CHECK(theirs.magic == ours.magic);
  CHECK(theirs.blocking == ours.blocking);
  CHECK(theirs.cgaClusterSize == ours.cga_cluster_size);
  CHECK(theirs.netName == ours.net_name);
  CHECK(theirs.splitShare == ours.split_share);
  CHECK(NCCL_VERSION(2, 18, 0) == oldest_version);
  CHECK(ours.version == NCCL_VERSION(2, 18, 0));
}
