#include "trireme/model/weight_copies.hpp"

#include "trireme/base/contract.hpp"

#include <cstdint>

namespace trireme::model {

KeptCopies::KeptCopies(const StageParameters& stage, device::Arena& arena) {
  for (const auto& slab : stage.slabs()) {
    // All matrices of layers are factors of products.
    if (slab.place.kind != Place::Kind::layer || slab.columns == 0) continue;
    copies_[slab.name] = {stage.parameter(slab.name),
                          {arena.allocate(device::DType::e4m3, {slab.rows, slab.columns}),
                           arena.allocate(device::DType::f32, {1})}};
  }
  if (copies_.empty()) return;
  magnitudes_ = arena.allocate(device::DType::f32, {static_cast<std::int64_t>(copies_.size())});
}

void KeptCopies::renew(device::Kernels& kernels, comm::ProcessGroup& tensor) const {
  if (copies_.empty()) return;
  std::int64_t index = 0;
  for (const auto& [name, kept] : copies_) {
    kernels.largest_magnitude(kept.weight, magnitudes_.slice(0, index++, 1));
  }
  // Ranks that hold parts of the same matrices: all magnitudes in one message.
  if (tensor.size() > 1) tensor.start_all_reduce(magnitudes_, comm::ReduceOp::max).join();
  index = 0;
  for (const auto& [name, kept] : copies_) {
    kernels.quantise(kept.weight, magnitudes_.slice(0, index++, 1), kept.copy);
  }
}

const device::Quantised& KeptCopies::of(std::string_view slab) const {
  const auto found = copies_.find(slab);
  TRIREME_EXPECT(found != copies_.end(), "no copy is kept of " + std::string(slab));
  return found->second.copy;
}

}  // namespace trireme::model
