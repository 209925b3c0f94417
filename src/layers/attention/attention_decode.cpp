// SPDX-License-Identifier: Apache-2.0
// Attention of new tokens to cached ones.
#include "attention.hpp"
#include "layers/tensor_parallel.hpp"

namespace trireme::layers {

using device::Tensor;

KeyValueCache AttentionBlock::make_cache(device::Arena& arena,
                                         const DecoderStage::Capacity& capacity) const {
  const auto room = [&] {
    return arena.allocate(
        context_.dtype, {capacity.slots, capacity.positions, kv_heads_, context_.config.head_dim});
  };
  return {room(), room()};
}

void AttentionBlock::attend_to_cache(const device::Attention& rows, const SequencePart& part,
                                     const KeyValueCache& cache) const {
  auto& kernels = context_.kernels;
  const auto of_part = [&](const Tensor& all_rows) {
    return all_rows.slice(1, part.first_row, part.count);
  };
  auto attend = rows;
  attend.q = of_part(rows.q);
  attend.out = of_part(rows.out);
  attend.lse = {};
  if (rotary_.cosines) {
    const auto rotate = [&](const Tensor& heads) {
      kernels.issue(device::Rotary{heads, rotary_.cosines, rotary_.sines, part.first_position});
    };
    rotate(attend.q);
    rotate(of_part(rows.k));
  }
  const auto keys = cache.keys.slice(0, part.slot, 1);
  const auto values = cache.values.slice(0, part.slot, 1);
  kernels.issue(device::Copy{of_part(rows.k), keys.slice(1, part.first_position, part.count)});
  kernels.issue(device::Copy{of_part(rows.v), values.slice(1, part.first_position, part.count)});
  const auto known = part.first_position + part.count;
  attend.k = keys.slice(1, 0, known);
  attend.v = values.slice(1, 0, known);
  kernels.issue(attend);
}

void AttentionBlock::decode(const CachedRows& rows, const PartActivations& working_part,
                            const Tensor& out) const {
  const auto& working = static_cast<const AttentionActivations&>(working_part);
  // A rank has all rows of what is decoded.
  project(working, working.input);
  const auto all_rows = attention({}, working);
  for (const auto& part : rows.parts) attend_to_cache(all_rows, part, rows.cache);
  forward_back(working, out);
  sum_rows(context_, out, out);
}

}  // namespace trireme::layers
