// SPDX-License-Identifier: Apache-2.0
#include "device/attention_text.hpp"

#include "trireme/base/format.hpp"

namespace trireme::device {
namespace {

const char* bits_in_words(AttentionBits bits) {
  switch (bits) {
    case AttentionBits::fastest:
      return "terms of gradients are added in any order, so that last bits differ from run to run "
             "unless numerics.deterministic = true";
    case AttentionBits::repeatable:
      break;
  }
  return "the same bits in each run";
}

/// "; set this", or nothing.
std::string advice(const cudnn::Reason& reason) {
  return reason.remedy.empty() ? "" : "; " + reason.remedy;
}

}  // namespace

AttentionText text_of_attention(const AttentionChoice& choice, const std::string& library,
                                const std::optional<cudnn::Reason>& reason) {
  if (choice.by == AttentionBy::own) {
    return {AttentionText::Kind::as_wished,
            "attention by own kernels, without tensor cores (numerics.attention = own)"};
  }
  if (!reason) {
    return {AttentionText::Kind::as_wished,
            base::format("attention by {}; {}", library, bits_in_words(choice.bits))};
  }
  const auto who = library.empty() ? std::string() : base::format(" and not by {}", library);
  return {AttentionText::Kind::slower,
          base::format("attention is computed by own kernels{} ({}), without tensor cores and "
                       "several times slower{}",
                       who, reason->why, advice(*reason))};
}

std::string text_of_no_kernel(std::int64_t head_dim, const cudnn::Reason& reason) {
  if (reason.why.empty()) {
    return base::format(
        "model.head_dim = {} but numerics.attention = own (own kernels take heads of up to {}); "
        "set model.head_dim = {} or numerics.attention = auto",
        head_dim, widest_own_head, widest_own_head);
  }
  return base::format(
      "model.head_dim = {} is more than own kernels take, {}, and cuDNN does not compute attention "
      "({}){}",
      head_dim, widest_own_head, reason.why, advice(reason));
}

AttentionText planned_attention(const AttentionSize& size, const AttentionChoice& choice) {
  const auto reason = cudnn::reason_against(size, cudnn::supposed_support);
  const auto* const library =
      reason ? "cuDNN" : "cuDNN, where it is 9.16 or newer and the GPU is Hopper";
  return text_of_attention(choice, library, reason);
}

base::Status check_attention(const AttentionSize& size, const AttentionChoice& choice) {
  if (size.head_dim <= widest_own_head) return {};
  const auto reason = cudnn::reason_against(size, cudnn::supposed_support);
  if (choice.by == AttentionBy::own) {
    return base::usage_failure(text_of_no_kernel(size.head_dim, {}));
  }
  if (reason) return base::usage_failure(text_of_no_kernel(size.head_dim, *reason));
  return {};
}

}  // namespace trireme::device
