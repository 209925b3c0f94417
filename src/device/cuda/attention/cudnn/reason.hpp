// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/attention_choice.hpp"
#include "trireme/device/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace trireme::device::cudnn {

/// Version and GPU on which cuDNN would compute.
struct Support {
  /// Version as Api::version returns it.
  std::size_t version = 0;
  /// Compute capability; 90 is 9.0.
  int capability = 0;
};
/// Support that a plan supposes where no GPU is at hand: Hopper, and a version without exceptions.
inline constexpr Support supposed_support{91600, 90};

/// Reason why cuDNN does not compute a call, and what a user could set instead.
struct Reason {
  /// "its heads are 36 wide, ..."
  std::string why;
  /// "set model.dropout = 0"; empty where no setting helps.
  std::string remedy;
};

/// Width of the widest head that cuDNN takes, forward and backward; widths are multiples of 8.
std::int64_t widest_head(const Support& support);
bool takes_head_dim(std::int64_t head_dim, const Support& support);

/// Reason why a call is not for cuDNN as used here; nothing if it is. It takes bf16, heads by
/// takes_head_dim(), as many queries as keys, no dropout (its masks are not ours), a kept lse, and
/// rows whose addresses and distances are multiples of 16 bytes.
std::optional<Reason> reason_against(const Attention& attention, const Support& support);
std::optional<Reason> reason_against(const AttentionBackward& backward, const Support& support);
/// Rules for the calls of a training run, before there are tensors.
std::optional<Reason> reason_against(const AttentionSize& size, const Support& support);

}  // namespace trireme::device::cudnn
