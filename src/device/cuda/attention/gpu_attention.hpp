// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/attention/cudnn/attention.hpp"
#include "device/cuda/attention/growing_workspace.hpp"
#include "device/cuda/runtime/stream.hpp"

#include <optional>
#include <string>

namespace trireme::device::cuda {

/// cuDNN's attention on one stream of the current GPU, if it is to be had.
class GpuAttention {
 public:
  struct Place {
    StreamView stream;
    /// Compute capability; 90 is 9.0.
    int capability = 0;
  };
  /// `kernels` issue to the same stream, and outlive this. The failure is that of a cuDNN that was
  /// asked for.
  static base::Result<std::unique_ptr<GpuAttention>> make(const AttentionChoice& choice,
                                                          const Place& place, Kernels& kernels);

  /// cuDNN's attention; null: own kernels compute all.
  cudnn::FusedAttention* fused() { return fused_ ? &*fused_ : nullptr; }
  /// Name and version, "cuDNN 9.19.1"; empty where there is none or it is not selected.
  const std::string& library() const { return library_; }
  base::Result<AttentionText> text(const AttentionSize& size) const;
  std::size_t workspace_bytes() const { return workspace_.total_bytes(); }

 private:
  using Workspace = GrowingWorkspace<DeviceMemory>;

  GpuAttention(const AttentionChoice& choice, const Place& place)
      : choice_(choice),
        place_(place),
        workspace_(allocate_device, [stream = place.stream] { stream.synchronize(); }) {}
  base::Status open(Kernels& kernels);

  AttentionChoice choice_;
  Place place_;
  Workspace workspace_;
  std::optional<cudnn::FusedAttention> fused_;
  std::string library_;
  /// Reason why a library that was asked for is missing.
  std::string missing_;
};

}  // namespace trireme::device::cuda
