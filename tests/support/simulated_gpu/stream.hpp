// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

/// What the runtime's handles point to here.
namespace trireme::testing::simulated_gpu {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

/// The end of some work.
struct Completion {
  bool done = false;
  Clock::time_point when;
};

/// One thing that a stream was told.
struct Item {
  Work work;
  /// Not before this; null: at once.
  std::shared_ptr<const Completion> after;

  bool ready() const { return !after || after->done; }
};

struct Node {
  Work work;
  /// Numbers of nodes that come before.
  std::vector<std::size_t> after;
};

/// What streams are told while they are captured.
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

/// A queue of work; done in order, some time.
struct CUstream_st {
  int gpu = 0;
  bool waits_for_legacy = false;
  int priority = 0;
  bool destroyed = false;
  std::deque<trireme::testing::simulated_gpu::Item> items;
  /// Of what was issued last.
  std::shared_ptr<const trireme::testing::simulated_gpu::Completion> last;
  /// Null: nothing is captured.
  std::shared_ptr<trireme::testing::simulated_gpu::Capture> capture;
  /// The nodes that what comes next follows.
  std::vector<std::size_t> tips;
};

struct CUevent_st {
  int gpu = 0;
  bool timed = true;
  /// Null: never recorded.
  std::shared_ptr<const trireme::testing::simulated_gpu::Completion> recorded;
  /// Where it was recorded last, if that was captured.
  std::shared_ptr<trireme::testing::simulated_gpu::Capture> capture;
  std::vector<std::size_t> tips;
};

struct CUgraph_st {
  std::shared_ptr<const std::vector<trireme::testing::simulated_gpu::Node>> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<trireme::testing::simulated_gpu::Node>> nodes;
};

namespace trireme::testing::simulated_gpu {

/// When issued work is done, as a seed decides: at once, some of it at each issue, or only when
/// somebody waits; in any order of streams that events allow.
class Order {
 public:
  explicit Order(std::uint64_t seed);

  void add(CUstream_st& stream) { streams_.push_back(&stream); }
  void remove(const CUstream_st& stream) { std::erase(streams_, &stream); }

  /// At the end of the stream.
  void issue(CUstream_st& stream, Work work, std::shared_ptr<const Completion> after = nullptr);
  /// When all that was issued so far is done.
  std::shared_ptr<const Completion> mark(CUstream_st& stream);
  /// Something was issued; is anything due already?
  bool stirs();
  /// What is due after an issue.
  void stir();
  /// A little of what there is.
  void go_on();
  /// Until it is; work of other streams may or may not be done on the way.
  void run_until(const std::function<bool()>& done);
  void run_all();
  /// Numbers of nodes in an order that they allow.
  std::vector<std::size_t> order_of(const std::vector<Node>& nodes);

 private:
  enum class Haste { lazy, mixed, eager };
  bool step(const std::vector<CUstream_st*>& held_back);
  std::size_t below(std::size_t count);

  std::mt19937_64 random_;
  Haste haste_;
  std::vector<CUstream_st*> streams_;
};

}  // namespace trireme::testing::simulated_gpu
