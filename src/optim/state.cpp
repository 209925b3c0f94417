// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/state.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/optim/matrix_rule.hpp"

#include <utility>

namespace trireme::optim {

using device::Tensor;

OptimizerState::OptimizerState(const Rule& rule, std::vector<Segment> segments,
                               const StateSizes& sizes, const FlatValues& parameters,
                               device::Arena& arena, int rank)
    : rounding_(rule.rounding),
      seed_(rule.seed),
      matrix_rule_(make_matrix_rule(rule, parameters.dtype())),
      segments_(std::move(segments)),
      rank_(rank),
      parameters_(parameters) {
  if (parameters.dtype() != device::DType::f32) {
    masters_ = {arena.allocate(device::DType::f32, {sizes.elements + sizes.matrices}), sizes};
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
}

Tensor OptimizerState::parameter(const Segment& segment) const {
  return parameters_.of(segment);
}

Tensor OptimizerState::master(const Segment& segment) const {
  return masters_ ? masters_.of(segment) : parameter(segment);
}

std::vector<NamedState> OptimizerState::of(const Segment& segment) const {
  const bool matrix = segment.content == Content::matrix;
  std::vector<NamedState> states;
  for (auto index = matrix ? element_states_ : 0;
       index < (matrix ? states_.size() : element_states_); ++index) {
    const auto& [name, values] = states_[index];
    states.push_back({name, values.slice(0, segment.state_begin, segment.flat.size())});
  }
  return states;
}

std::vector<NamedState> OptimizerState::owner_states_of(const Segment& segment) const {
  if (!matrix_rule_ || segment.content != Content::matrix || segment.owner != rank_) return {};
  std::vector<NamedState> states;
  auto begin = segment.owner_state_begin;
  for (const auto& [name, shape] : matrix_rule_->owner_states(segment.shape)) {
    const auto count = shape.rows * shape.columns;
    states.push_back(
        {name, owner_states_.slice(0, begin, count).reshape({shape.rows, shape.columns})});
    begin += count;
  }
  return states;
}

/// Each step has a seed of its own, which a run that goes on from it finds again.
device::StochasticRounding OptimizerState::rounding(const Segment& segment,
                                                    std::int64_t step) const {
  if (rounding_ == ParameterRounding::nearest) return {};
  auto rounding = segment.place;
  const auto words =
      base::philox(seed_, base::stream_of("optimizer.rounding"), static_cast<std::uint64_t>(step));
  rounding.seed = (std::uint64_t{words[1]} << 32) | words[0];
  TRIREME_EXPECT(rounding.active(), "stochastic rounding knows where in its tensor an element is");
  return rounding;
}

void OptimizerState::copy_to_parameter(device::Kernels& kernels, const Segment& segment,
                                       const Tensor& master, std::int64_t step) const {
  const auto own = rounding(segment, step);
  if (own.active()) {
    kernels.issue(device::RoundStochastically{master, own, parameter(segment)});
  } else {
    kernels.issue(device::Copy{master, parameter(segment)});
  }
}

}  // namespace trireme::optim
