// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/simulated_gpu/streams.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

/// Objects that the runtime's handles point to here.
namespace trireme::testing::simulated_gpu {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

struct Node {
  Work work;
  /// Numbers of nodes that come before.
  std::vector<std::size_t> after;
};
using Nodes = std::shared_ptr<const std::vector<Node>>;

/// Work that streams are told while they are captured.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool spoilt = false;
  bool ended = false;
  std::vector<Node> nodes;
  std::vector<CUstream_st*> members;
};

}  // namespace trireme::testing::simulated_gpu

struct CUstream_st {
  int gpu = 0;
  bool waits_for_legacy = false;
  /// True of a destroyed stream: what it was told is done all the same.
  bool destroyed = false;
  std::shared_ptr<trireme::testing::simulated_gpu::Stream> queue;
  /// Null: nothing is captured.
  std::shared_ptr<trireme::testing::simulated_gpu::Capture> capture;
  /// The nodes that what comes next follows.
  std::vector<std::size_t> tips;
};

struct CUevent_st {
  int gpu = 0;
  bool timed = true;
  /// Empty: never recorded.
  std::optional<trireme::testing::simulated_gpu::Marker> recorded;
  /// When the GPU came to it, if it is timed.
  std::shared_ptr<const trireme::testing::simulated_gpu::Clock::time_point> when;
  /// Where it was recorded last, if that was captured.
  std::shared_ptr<trireme::testing::simulated_gpu::Capture> capture;
  std::vector<std::size_t> tips;
};

struct CUgraph_st {
  trireme::testing::simulated_gpu::Nodes nodes;
};

struct CUgraphExec_st {
  trireme::testing::simulated_gpu::Nodes nodes;
};
