// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/gpu_attention.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "device/attention_text.hpp"
#include "device/cuda/attention/cudnn/library.hpp"

namespace trireme::device::cuda {

base::Result<std::unique_ptr<GpuAttention>> GpuAttention::make(const AttentionChoice& choice,
                                                               const Place& place,
                                                               Kernels& kernels) {
  std::unique_ptr<GpuAttention> attention(new GpuAttention(choice, place));
  if (choice.by == AttentionBy::own) return attention;
  const auto status = attention->open(kernels);
  if (!status.ok() && choice.by == AttentionBy::cudnn) return status.failure();
  if (!status.ok()) attention->missing_ = status.failure().text;
  return attention;
}

base::Status GpuAttention::open(Kernels& kernels) {
  const auto library = cudnn::load_library();
  if (!library.ok()) return library.failure();
  try {
    const auto workspace = [this, &device = kernels.device()](std::size_t bytes) {
      return workspace_.take(
          bytes, device.capturing() ? Workspace::Use::captured : Workspace::Use::issued);
    };
    fused_.emplace(
        (*library)->api,
        cudnn::FusedAttention::Surroundings{place_.stream.raw(), workspace, kernels},
        cudnn::FusedAttention::Settings{.bits = choice_.bits, .capability = place_.capability});
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
  library_ = base::format("cuDNN {}", (*library)->version);
  return {};
}

base::Result<AttentionText> GpuAttention::text(const AttentionSize& size) const {
  auto reason = missing_.empty() ? std::optional<cudnn::Reason>{}
                                 : cudnn::Reason{missing_, "install cuDNN 9.16 or newer"};
  if (fused_) reason = cudnn::reason_against(size, fused_->support());
  if (size.head_dim > widest_own_head && (reason || !fused_)) {
    return base::Failure{base::ExitCode::topology,
                         text_of_no_kernel(size.head_dim, reason.value_or(cudnn::Reason{}))};
  }
  return text_of_attention(choice_, library_, reason);
}

}  // namespace trireme::device::cuda
