#include "device/cuda/card_attention.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "device/cudnn/library.hpp"

namespace trireme::device::cuda {

base::Result<std::unique_ptr<CardAttention>> CardAttention::make(AttentionBy by,
                                                                 StreamView stream) {
  std::unique_ptr<CardAttention> attention(new CardAttention(stream));
  if (by == AttentionBy::own) {
    attention->text_ = "attention by own kernels";
    return attention;
  }
  const auto status = attention->open();
  if (!status.ok() && by == AttentionBy::cudnn) return status.failure();
  if (!status.ok()) {
    attention->text_ =
        base::format("attention by own kernels, which are slower: {}", status.failure().text);
  }
  return attention;
}

base::Status CardAttention::open() {
  const auto library = cudnn::load_library();
  if (!library.ok()) return library.failure();
  try {
    fused_.emplace((*library)->api, stream_.raw(),
                   [this](std::size_t bytes) { return workspace(bytes); });
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
  text_ = base::format("attention by cuDNN {}", (*library)->version);
  return {};
}

/// Exactly what is asked for, so that what a run takes is what its plan says. A larger one is rare:
/// it waits for the card.
void* CardAttention::workspace(std::size_t bytes) {
  if (bytes > workspace_size_) {
    stream_.synchronize();
    workspace_ = {};
    workspace_size_ = 0;
    workspace_ = allocate_device(bytes);
    workspace_size_ = bytes;
  }
  return workspace_.get();
}

}  // namespace trireme::device::cuda
