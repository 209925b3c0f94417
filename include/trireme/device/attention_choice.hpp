// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/dtype.hpp"

#include <cstdint>
#include <string>

namespace trireme::device {

/// Code that computes attention on a GPU (`numerics.attention`).
enum class AttentionBy {
  either,  ///< cuDNN where it is installed and takes the call, own kernels else
  own,
  cudnn,  ///< as `either`, but a node without cuDNN is a failure
};

/// Whether attention on a GPU gives the same bits each time (`numerics.deterministic`).
enum class AttentionBits {
  fastest,     ///< terms of dq are added in any order: its last bits differ from run to run
  repeatable,  ///< every sum in one order
};

struct AttentionChoice {
  AttentionBy by = AttentionBy::either;
  AttentionBits bits = AttentionBits::fastest;

  bool operator==(const AttentionChoice&) const = default;
};

/// Attention of one micro-batch on one rank, as a model's training calls it: causal.
struct AttentionSize {
  DType dtype = DType::bf16;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool dropout = false;
  /// Ranks that divide each sequence: where there are several, calls have fewer queries than keys.
  std::int64_t context = 1;
  /// Documents of a sequence do not see each other (Attention::first_keys).
  bool documents = false;
};

/// The widest head that own kernels of GPUs take. Those of CPUs take any.
inline constexpr std::int64_t widest_own_head = 128;

/// Sentences about its attention that a run shows.
struct AttentionText {
  enum class Kind { as_wished, slower };

  Kind kind = Kind::as_wished;
  std::string sentence;
};

/// Text that a GPU's start will show, supposed that the GPU is of the Hopper generation and its
/// node has a cuDNN that is not older than 9.16.
AttentionText planned_attention(const AttentionSize& size, const AttentionChoice& choice);

/// Whether any GPU has a kernel for heads of this width. The failure is a user's mistake.
base::Status check_attention(const AttentionSize& size, const AttentionChoice& choice);

}  // namespace trireme::device
