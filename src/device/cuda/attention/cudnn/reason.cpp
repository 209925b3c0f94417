// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/reason.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::device::cudnn {
namespace {

/// Facts of a call that are known before its tensors lie anywhere.
struct CallKind {
  DType dtype = DType::bf16;
  std::int64_t head_dim = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool causal = true;
  bool dropout = false;
  bool documents = false;
};

CallKind kind_of(const Attention& attention) {
  return {attention.q.dtype(),
          attention.q.dim(3),
          attention.q.dim(1),
          attention.k.dim(1),
          attention.causal,
          attention.dropout.rate > 0.0F,
          static_cast<bool>(attention.first_keys)};
}

Reason against_head_dim(std::int64_t head_dim, const Support& support) {
  constexpr std::int64_t multiple = 8;
  const auto widest = widest_head(support);
  const auto below = std::min(widest, head_dim / multiple * multiple);
  const auto above = (head_dim + multiple - 1) / multiple * multiple;
  std::string nearest = below > 0 ? base::format("{}", below) : "";
  if (above <= widest) nearest += base::format("{}{}", nearest.empty() ? "" : " or ", above);
  return {base::format("its heads are {} wide, and it takes multiples of {} up to {}", head_dim,
                       multiple, widest),
          base::format("set model.head_dim = {}", nearest)};
}

std::optional<Reason> against_forward(const CallKind& call, const Support& support) {
  if (call.dtype != DType::bf16) {
    return Reason{base::format("it would compute in {}", name(call.dtype)),
                  "set numerics.precision = bf16"};
  }
  if (!takes_head_dim(call.head_dim, support)) return against_head_dim(call.head_dim, support);
  if (call.queries != call.keys) return Reason{"it has other keys than queries", ""};
  if (call.dropout) {
    return Reason{"it has dropout, whose masks are not cuDNN's", "set model.dropout = 0"};
  }
  if (call.documents) {
    return Reason{"documents see themselves alone, which is not asked of cuDNN yet",
                  "set train.document_mask = false"};
  }
  return std::nullopt;
}

/// Known defects in backwards of some versions, as NVIDIA's cudnn-frontend 1.23 works around or
/// refuses them, and as its issues 160 and 628 describe.
std::optional<Reason> against_backward(const CallKind& call, const Support& support) {
  constexpr std::int64_t tile_keys = 128;
  constexpr std::size_t first_wrong = 91000;
  constexpr std::size_t last_wrong = 91001;
  constexpr std::size_t last_with_whole_tiles = 91500;
  if (support.version >= first_wrong && support.version <= last_wrong) {
    return Reason{"the backward of cuDNN 9.10.0 and 9.10.1 is known to be wrong",
                  "install cuDNN 9.10.2 or newer"};
  }
  if (support.version <= last_with_whole_tiles && call.keys % tile_keys != 0) {
    return Reason{
        base::format("up to cuDNN 9.15.0 its backward is known to be wrong where {} keys are not a "
                     "multiple of {}",
                     call.keys, tile_keys),
        base::format("install cuDNN 9.16 or newer, or set train.sequence_length = {}",
                     (call.keys + tile_keys - 1) / tile_keys * tile_keys)};
  }
  if (!call.causal && call.keys % tile_keys == tile_keys / 2) {
    return Reason{base::format("without a causal mask its backward of {} keys, half a tile of {} "
                               "too many, may give NaN",
                               call.keys, tile_keys),
                  ""};
  }
  return std::nullopt;
}

bool packs_evenly(const Tensor& tensor) {
  constexpr std::int64_t pack_bytes = 16;
  const auto element = static_cast<std::int64_t>(size_of(tensor.dtype()));
  bool evenly = reinterpret_cast<std::uintptr_t>(tensor.raw()) % pack_bytes == 0;
  for (int dimension = 0; dimension < 3; ++dimension) {
    evenly = evenly && tensor.stride(dimension) * element % pack_bytes == 0;
  }
  return evenly;
}

}  // namespace

std::int64_t widest_head(const Support& support) {
  // Version from which on Hopper has backward of heads up to 256 (NVIDIA's cudnn-frontend 1.8).
  constexpr std::size_t wide_backward = 90500;
  constexpr int hopper = 90;
  const bool wide = support.version >= wide_backward && support.capability == hopper;
  return wide ? 256 : 128;
}

bool takes_head_dim(std::int64_t head_dim, const Support& support) {
  return head_dim > 0 && head_dim % 8 == 0 && head_dim <= widest_head(support);
}

std::optional<Reason> reason_against(const Attention& attention, const Support& support) {
  if (auto reason = against_forward(kind_of(attention), support)) return reason;
  if (!attention.lse || !attention.lse.contiguous()) return Reason{"it keeps no lse", ""};
  if (attention.q.element_count() == 0) return Reason{"it is empty", ""};
  for (const auto* tensor : {&attention.q, &attention.k, &attention.v, &attention.out}) {
    if (packs_evenly(*tensor)) continue;
    return Reason{"its rows do not lie at multiples of 16 bytes", ""};
  }
  return std::nullopt;
}

std::optional<Reason> reason_against(const AttentionBackward& backward, const Support& support) {
  for (const auto* tensor : {&backward.d_out, &backward.dq, &backward.dk, &backward.dv}) {
    if (tensor->dtype() != DType::bf16) return Reason{"its gradients are not bf16", ""};
    if (packs_evenly(*tensor)) continue;
    return Reason{"its gradients do not lie at multiples of 16 bytes", ""};
  }
  if (auto reason = reason_against(backward.forward, support)) return reason;
  return against_backward(kind_of(backward.forward), support);
}

std::optional<Reason> reason_against(const AttentionSize& size, const Support& support) {
  const auto queries = size.context > 1 ? size.seq / (2 * size.context) : size.seq;
  const CallKind call{size.dtype, size.head_dim, queries,       size.seq,
                      true,       size.dropout,  size.documents};
  if (auto reason = against_forward(call, support)) return reason;
  return against_backward(call, support);
}

}  // namespace trireme::device::cudnn
