// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/optimizer.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/part_exchange.hpp"

#include "micro_groups.hpp"
#include "step.hpp"

#include <algorithm>
#include <utility>

namespace trireme::optim {

using device::Tensor;

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
                     const Tensor& parameters, device::Arena& arena, const Peers& peers)
    : rule_(rule),
      matrix_rule_(make_matrix_rule(rule, parameters.dtype())),
      exchange_(peers.exchange),
      sharing_(peers.sharing),
      segments_(std::move(segments)),
      sizes_(sizes),
      parameters_(parameters) {
  if (parameters.dtype() != device::DType::f32) {
    masters_ = arena.allocate(device::DType::f32, {sizes.elements + sizes.matrices});
  }
  const auto add_states = [&](Content content, std::int64_t size) {
    for (auto& state : state_names(rule, content)) {
      states_.push_back({std::move(state), arena.allocate(device::DType::f32, {size})});
    }
  };
  add_states(Content::elements, sizes.elements);
  element_states_ = states_.size();
  if (matrix_rule_) add_states(Content::matrix, sizes.matrices);
  if (sizes.owner > 0) owner_states_ = arena.allocate(device::DType::f32, {sizes.owner});
  form_groups();
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

int Optimizer::ranks() const {
  return exchange_ != nullptr ? exchange_->ranks() : 1;
}

int Optimizer::rank() const {
  return exchange_ != nullptr ? exchange_->rank() : 0;
}

Tensor Optimizer::master(const Segment& segment) const {
  const auto before = segment.content == Content::matrix ? sizes_.elements : 0;
  return masters_ ? masters_.slice(0, before + segment.state_begin, segment.flat.size())
                  : parameters_.slice(0, segment.flat.begin, segment.flat.size());
}

std::vector<Optimizer::State> Optimizer::states_of(const Segment& segment) const {
  const bool matrix = segment.content == Content::matrix;
  std::vector<State> states;
  for (auto index = matrix ? element_states_ : 0;
       index < (matrix ? states_.size() : element_states_); ++index) {
    const auto& [name, values] = states_[index];
    states.push_back({name, values.slice(0, segment.state_begin, segment.flat.size())});
  }
  return states;
}

std::vector<Optimizer::State> Optimizer::owner_states_of(const Segment& segment) const {
  if (!matrix_rule_ || segment.content != Content::matrix || segment.owner != rank()) return {};
  std::vector<State> states;
  auto begin = segment.owner_state_begin;
  for (const auto& [name, shape] : matrix_rule_->owner_states(segment.shape)) {
    const auto count = shape.rows * shape.columns;
    states.push_back(
        {name, owner_states_.slice(0, begin, count).reshape({shape.rows, shape.columns})});
    begin += count;
  }
  return states;
}

/// The last state of its owner; empty where there is none.
Tensor Optimizer::update_count(const Segment& segment) const {
  const auto states = owner_states_of(segment);
  return states.empty() ? Tensor{} : states.back().values;
}

/// Reads the numbers of updates once: the host counts on, and waits for no device in a step.
void Optimizer::know_updates(device::Kernels& kernels, const device::Arena& workspace) {
  if (!owner_states_ || !updates_.empty()) return;
  // One that does all that any does, where nothing is computed and nothing can be read.
  updates_.assign(segments_.size(), rule_.factors.root_every);
  if (workspace.is_measuring()) return;
  device::HostMirror mirror(kernels.device());
  std::vector<Tensor> counts;
  for (const auto& segment : segments_) counts.push_back(mirror.of(update_count(segment)));
  mirror.fetch();
  for (std::size_t index = 0; index < counts.size(); ++index) {
    if (counts[index]) updates_[index] = static_cast<std::int64_t>(counts[index].f32()[0]);
  }
}

/// Each step has a seed of its own, which a run that goes on from it finds again.
device::StochasticRounding Optimizer::rounding_of(const Segment& segment, std::int64_t step) const {
  if (rule_.rounding == ParameterRounding::nearest) return {};
  auto rounding = segment.place;
  const auto words = base::philox(rule_.seed, base::stream_of("optimizer.rounding"),
                                  static_cast<std::uint64_t>(step));
  rounding.seed = (std::uint64_t{words[1]} << 32) | words[0];
  TRIREME_EXPECT(rounding.active(), "stochastic rounding knows where in its tensor an element is");
  return rounding;
}

void Optimizer::update_elements(device::Kernels& kernels, const Segment& segment,
                                const Step& step) {
  const auto count = segment.flat.size();
  const auto gradient = step.gradients.slice(0, segment.flat.begin, count);
  const auto parameter = parameters_.slice(0, segment.flat.begin, count);
  const auto state = [&](std::size_t index) {
    return states_[index].values.slice(0, segment.state_begin, count);
  };
  const float decay = segment.decays ? rule_.weight_decay : 0.0F;
  if (rule_.kind == RuleKind::sgd) {
    kernels.issue(device::SgdUpdate{.rule = {.learning_rate = step.learning_rate,
                                             .momentum = rule_.momentum,
                                             .weight_decay = decay,
                                             .gradient_scale = step.gradient_scale,
                                             .rounding = rounding_of(segment, step.number)},
                                    .gradient = gradient,
                                    .master = master(segment),
                                    .momentum = state(0),
                                    .parameter = parameter});
    return;
  }
  const float learning_rate =
      matrix_rule_ ? static_cast<float>(rule_.adamw_rate * static_cast<double>(step.learning_rate))
                   : step.learning_rate;
  kernels.issue(device::AdamWUpdate{.rule = {.learning_rate = learning_rate,
                                             .beta1 = rule_.beta1,
                                             .beta2 = rule_.beta2,
                                             .eps = rule_.eps,
                                             .weight_decay = decay,
                                             .gradient_scale = step.gradient_scale,
                                             .step = step.number,
                                             .rounding = rounding_of(segment, step.number)},
                                    .gradient = gradient,
                                    .master = master(segment),
                                    .first_moment = state(0),
                                    .second_moment = state(1),
                                    .parameter = parameter});
}

void Optimizer::update_all_elements(device::Kernels& kernels, const Step& step) {
  for (const auto& segment : segments_) {
    if (segment.content == Content::elements) update_elements(kernels, segment, step);
  }
}

void Optimizer::update(device::Kernels& kernels, device::Arena& workspace, const Tensor& gradients,
                       float learning_rate, float gradient_scale, std::int64_t step) {
  const Step shared{gradients, learning_rate, gradient_scale, step};
  know_updates(kernels, workspace);
  // With an exchange elements are updated while the first parts are under way.
  if (exchange_ == nullptr || groups_.empty()) update_all_elements(kernels, shared);
  update_matrices(kernels, workspace, shared);
}

void Optimizer::give_parameters(device::Kernels& kernels, std::int64_t step) {
  updates_.clear();
  if (!masters_) return;
  for (const auto& segment : segments_) {
    const auto parameter = parameters_.slice(0, segment.flat.begin, segment.flat.size());
    const auto rounding = rounding_of(segment, step);
    if (rounding.active()) {
      kernels.issue(device::RoundStochastically{master(segment), rounding, parameter});
    } else {
      kernels.issue(device::Copy{master(segment), parameter});
    }
  }
}

}  // namespace trireme::optim
