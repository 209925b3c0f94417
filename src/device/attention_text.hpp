// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/reason.hpp"

#include <optional>
#include <string>

namespace trireme::device {

/// The sentence of a run's start and of its plan. `library`: "cuDNN 9.19.1"; empty where there is
/// none, or own kernels were asked for. `reason`: why it does not compute.
AttentionText text_of_attention(const AttentionChoice& choice, const std::string& library,
                                const std::optional<cudnn::Reason>& reason);
/// Text about heads that own kernels do not take, if cuDNN has this reason; none: it was not asked
/// for.
std::string text_of_no_kernel(std::int64_t head_dim, const cudnn::Reason& reason);

}  // namespace trireme::device
