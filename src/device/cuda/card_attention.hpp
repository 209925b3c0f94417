#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/stream.hpp"
#include "device/cudnn/attention.hpp"

#include <optional>
#include <string>

namespace trireme::device::cuda {

/// cuDNN's attention on one stream of the current card, if it is to be had.
class CardAttention {
 public:
  /// The failure is that of a cuDNN that was asked for.
  static base::Result<std::unique_ptr<CardAttention>> make(AttentionBy by, StreamView stream);

  /// Null: own kernels compute all.
  cudnn::FusedAttention* fused() { return fused_ ? &*fused_ : nullptr; }
  /// "attention by cuDNN 9.19.1", "attention by own kernels (why)".
  const std::string& text() const { return text_; }
  std::size_t workspace_bytes() const { return workspace_size_; }

 private:
  explicit CardAttention(StreamView stream) : stream_(stream) {}
  base::Status open();
  void* workspace(std::size_t bytes);

  StreamView stream_;
  DeviceMemory workspace_;
  std::size_t workspace_size_ = 0;
  std::optional<cudnn::FusedAttention> fused_;
  std::string text_;
};

}  // namespace trireme::device::cuda
