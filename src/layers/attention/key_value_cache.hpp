// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/decoder_stage.hpp"

namespace trireme::layers {

/// Keys (rotated) and values of one layer: [slots, positions, kv_heads, head_dim] each.
struct KeyValueCache {
  device::Tensor keys;
  device::Tensor values;
};

/// Operands of attention in a step of decoding.
struct CachedRows {
  std::span<const SequencePart> parts;
  const KeyValueCache& cache;
};

}  // namespace trireme::layers
