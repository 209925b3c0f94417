// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/optimizer.hpp"

#include "element_updates.hpp"
#include "matrix_updates.hpp"
#include "state_ring.hpp"

#include <utility>

namespace trireme::optim {

struct Optimizer::Parts {
  OptimizerState state;
  ElementUpdates elements;
  std::optional<MatrixUpdates> matrices;
  std::optional<StateRing> ring;  // of state whose home is host memory

  Parts(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
        const FlatValues& parameters, device::Arena& arena, const Peers& peers,
        const std::optional<StateOffload>& offload)
      : state(rule, std::move(segments), sizes, parameters, offload ? offload->homes : arena,
              peers.exchange != nullptr ? peers.exchange->rank() : 0),
        elements(rule, state) {
    if (state.matrix_rule() != nullptr) matrices.emplace(rule, state, peers);
    if (offload) ring.emplace(state, sizes.elements, *offload, arena);
  }
};

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
                     const FlatValues& parameters, device::Arena& arena, const Peers& peers,
                     const std::optional<StateOffload>& offload)
    : parts_(std::make_unique<Parts>(rule, std::move(segments), sizes, parameters, arena, peers,
                                     offload)) {}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

void Optimizer::update(device::Kernels& kernels, device::Arena& workspace,
                       const FlatValues& gradients, float learning_rate, float gradient_scale,
                       std::int64_t step) {
  auto& [state, elements, matrices, ring] = *parts_;
  const UpdateStep facts{kernels, workspace, gradients, learning_rate, gradient_scale, step};
  if (matrices) return matrices->update(facts, elements);
  if (ring) return elements.update(facts, *ring);
  elements.update(facts);
}

void Optimizer::state_changed(device::Kernels& kernels, std::int64_t step) {
  auto& [state, elements, matrices, ring] = *parts_;
  if (matrices) matrices->state_changed();
  if (!state.has_masters()) return;
  if (ring) {
    return ring->read_masters([&, &its = state](const StateRing::Run& run) {
      its.copy_to_parameter(kernels, run.segment, run.master, step);
    });
  }
  for (const auto& segment : state.segments()) {
    state.copy_to_parameter(kernels, segment, state.master(segment), step);
  }
}

const OptimizerState& Optimizer::state() const {
  return parts_->state;
}

void Optimizer::read(const device::Tensor& values,
                     const std::function<void(const device::Tensor&)>& act) const {
  auto& ring = parts_->ring;
  if (ring && ring->is_home(values)) return ring->read(values, act);
  act(values);
}

ExchangeTimes Optimizer::take_exchange_times() {
  return parts_->matrices ? parts_->matrices->take_exchange_times() : ExchangeTimes{};
}

}  // namespace trireme::optim
