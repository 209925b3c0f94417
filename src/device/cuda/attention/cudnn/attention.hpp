// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cuda/attention/cudnn/attention_parts.hpp"
#include "device/cuda/attention/cudnn/plan.hpp"
#include "device/cuda/attention/cudnn/reason.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>

namespace trireme::device::cudnn {

/// Owner of a library's context for one stream of the current GPU.
class Context {
 public:
  Context(const Api& api, void* stream);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  Handle handle() const { return handle_; }

 private:
  const Api& api_;
  Handle handle_ = nullptr;
};

/// Attention and its backward by cuDNN, on one stream. Plans are made at the first use of a shape
/// (the library compiles a kernel: some tenths of a second) and kept. lse is what every other
/// implementation keeps, so either may do the backward of either's forward.
class FusedAttention {
 public:
  struct Settings {
    AttentionBits bits = AttentionBits::fastest;
    /// Compute capability; 90 is 9.0.
    int capability = 0;
    /// Bound of the workspace; a backward is done in runs that need no more (see BackwardParts).
    std::size_t most_workspace_bytes = std::size_t{1} << 30;
  };
  /// Stream, workspace and kernels that the library's runs need, in the order of the same stream.
  struct Surroundings {
    void* stream = nullptr;
    /// Device memory of so many bytes at least, at a multiple of 256, until the next call.
    std::function<void*(std::size_t bytes)> workspace;
    /// Kernels whose fill, copy and accumulate are used.
    Kernels& kernels;
  };

  FusedAttention(const Api& api, Surroundings surroundings, const Settings& settings);

  /// Issues the call, or returns false: other kernels must compute it.
  bool forward(const Attention& attention);
  bool backward(const AttentionBackward& backward);

  const Support& support() const { return support_; }
  /// Largest workspace for the forward and backward of such an attention.
  static std::size_t workspace_bytes(const AttentionExtents& extents, const Settings& settings);

 private:
  /// Tensors of a part, those of dk and dv in the workspace where they are terms.
  struct Run;
  Run run_of(const AttentionBackward& whole, const BackwardPart& part, std::byte* workspace) const;
  void run(const Run& run);
  void run_plan(const Run& run);

  /// Plan of a shape; null if the library has none, which is logged once for each shape.
  template <typename Extents, typename MakeGraph>
  const Plan* plan_for(std::map<Extents, std::optional<Plan>>& plans, const Extents& extents,
                       const Plan::Limits& limits, const MakeGraph& graph);

  const Api& api_;
  Context context_;
  Surroundings around_;
  Settings settings_;
  Support support_;
  std::map<AttentionExtents, std::optional<Plan>> forward_plans_;
  std::map<AttentionBackwardExtents, std::optional<Plan>> backward_plans_;
};

}  // namespace trireme::device::cudnn
