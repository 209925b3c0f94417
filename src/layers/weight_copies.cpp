// SPDX-License-Identifier: Apache-2.0
#include "trireme/layers/weight_copies.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/layers/stage_context.hpp"

#include "magnitudes.hpp"

#include <cstdint>

namespace trireme::layers {

KeptCopies::KeptCopies(const model::StageParameters& stage, device::Arena& arena) {
  for (const auto& fused : stage.fused_parameters()) {
    // All matrices of layers are operands of GEMMs.
    if (fused.place.kind != model::Place::Kind::layer || fused.columns == 0) continue;
    copies_[fused.name] = {stage.parameter(fused.name),
                           {arena.allocate(device::DType::e4m3, {fused.rows, fused.columns}),
                            arena.allocate(device::DType::f32, {1})}};
  }
}

void KeptCopies::renew(const StageContext& context) const {
  if (copies_.empty()) return;
  auto& kernels = context.kernels;
  const device::ArenaScope scope(context.workspace);
  const auto magnitudes =
      context.workspace.allocate(device::DType::f32, {static_cast<std::int64_t>(copies_.size())});
  std::int64_t index = 0;
  for (const auto& [name, kept] : copies_) {
    kernels.issue(device::LargestMagnitude{kept.weight, magnitudes.slice(0, index++, 1)});
  }
  // Ranks that hold parts of the same matrices: all magnitudes in one message.
  join_magnitudes(context.tensor, magnitudes);
  index = 0;
  for (const auto& [name, kept] : copies_) {
    kernels.issue(device::Quantise{kept.weight, magnitudes.slice(0, index++, 1), kept.copy});
  }
}

const device::Quantised& KeptCopies::of(std::string_view name) const {
  const auto found = copies_.find(name);
  TRIREME_EXPECT(found != copies_.end(), "no copy is kept of " + std::string(name));
  return found->second.copy;
}

}  // namespace trireme::layers
