// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/optimizer.hpp"

#include "element_updates.hpp"
#include "matrix_updates.hpp"

#include <optional>
#include <utility>

namespace trireme::optim {

struct Optimizer::Parts {
  OptimizerState state;
  ElementUpdates elements;
  std::optional<MatrixUpdates> matrices;

  Parts(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
        const FlatValues& parameters, device::Arena& arena, const Peers& peers)
      : state(rule, std::move(segments), sizes, parameters, arena,
              peers.exchange != nullptr ? peers.exchange->rank() : 0),
        elements(rule, state) {
    if (state.matrix_rule() != nullptr) matrices.emplace(rule, state, peers);
  }
};

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
                     const FlatValues& parameters, device::Arena& arena, const Peers& peers)
    : parts_(std::make_unique<Parts>(rule, std::move(segments), sizes, parameters, arena, peers)) {}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

void Optimizer::update(device::Kernels& kernels, device::Arena& workspace,
                       const FlatValues& gradients, float learning_rate, float gradient_scale,
                       std::int64_t step) {
  auto& [state, elements, matrices] = *parts_;
  const UpdateStep facts{kernels, workspace, gradients, learning_rate, gradient_scale, step};
  if (matrices) return matrices->update(facts, elements);
  elements.update(facts);
}

void Optimizer::state_changed(device::Kernels& kernels, std::int64_t step) {
  if (parts_->matrices) parts_->matrices->state_changed();
  parts_->state.copy_masters_to_parameters(kernels, step);
}

const OptimizerState& Optimizer::state() const {
  return parts_->state;
}

ExchangeTimes Optimizer::take_exchange_times() {
  return parts_->matrices ? parts_->matrices->take_exchange_times() : ExchangeTimes{};
}

}  // namespace trireme::optim
