// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/optimizer.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/optim/matrix_rule.hpp"

#include <algorithm>
#include <utility>

namespace trireme::optim {

using device::Tensor;

namespace {

/// Elements of the matrices that are updated together: enough to keep all threads busy with small
/// ones, few enough that their workspace stays small beside a model.
constexpr std::int64_t batch_elements = std::int64_t{1} << 22;

/// Elements of the largest part of a matrix, or of the matrix.
std::int64_t largest_part(const layout::MatrixShape& shape, const std::vector<layout::Box>& parts) {
  if (parts.empty()) return shape.rows * shape.columns;
  std::int64_t most = 0;
  for (const auto& part : parts) most = std::max(most, layout::element_count(part));
  return most;
}

}  // namespace

/// What all segments of an update share.
struct Optimizer::Step {
  Tensor gradients;
  float learning_rate = 0;
  float gradient_scale = 1;
  std::int64_t number = 1;
};

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
                     const Tensor& parameters, device::Arena& arena, PartExchange* exchange)
    : rule_(rule),
      matrix_rule_(make_matrix_rule(rule, parameters.dtype())),
      exchange_(exchange),
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
  make_batches();
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;

int Optimizer::ranks() const {
  return exchange_ != nullptr ? exchange_->ranks() : 1;
}

int Optimizer::rank() const {
  return exchange_ != nullptr ? exchange_->rank() : 0;
}

/// Matrices of one shape, in the order of the segments: the same batches on all ranks that exchange
/// parts.
void Optimizer::make_batches() {
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    const auto& segment = segments_[index];
    if (segment.content != Content::matrix) continue;
    TRIREME_EXPECT(segment.owner < ranks(), "an owner is one of the ranks that exchange parts");
    const auto owner = static_cast<std::size_t>(segment.owner);
    const auto elements = std::max<std::int64_t>(1, segment.shape.rows * segment.shape.columns);
    const auto most = std::max<std::int64_t>(1, batch_elements / elements);
    auto open = std::find_if(batches_.begin(), batches_.end(), [&](const Batch& batch) {
      return batch.shape == segment.shape && batch.parts == segment.parts &&
             batch.owned[owner] < most;
    });
    if (open == batches_.end()) {
      const std::vector<std::int64_t> none(static_cast<std::size_t>(ranks()), 0);
      batches_.push_back({segment.shape, segment.parts, {}, {}, none});
      open = std::prev(batches_.end());
    }
    open->segments.push_back(index);
    open->slots.push_back(open->owned[owner]++);
  }
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
    kernels.issue(device::SgdUpdate{{.learning_rate = step.learning_rate,
                                     .momentum = rule_.momentum,
                                     .weight_decay = decay,
                                     .gradient_scale = step.gradient_scale,
                                     .rounding = rounding_of(segment, step.number)},
                                    gradient,
                                    master(segment),
                                    state(0),
                                    parameter});
    return;
  }
  const float learning_rate =
      matrix_rule_ ? static_cast<float>(rule_.adamw_rate * static_cast<double>(step.learning_rate))
                   : step.learning_rate;
  kernels.issue(device::AdamWUpdate{{.learning_rate = learning_rate,
                                     .beta1 = rule_.beta1,
                                     .beta2 = rule_.beta2,
                                     .eps = rule_.eps,
                                     .weight_decay = decay,
                                     .gradient_scale = step.gradient_scale,
                                     .step = step.number,
                                     .rounding = rounding_of(segment, step.number)},
                                    gradient,
                                    master(segment),
                                    state(0),
                                    state(1),
                                    parameter});
}

/// Directions of a batch, in place of what the rule took: f32 [ranks, slots, part], by owner.
void Optimizer::direct(device::Kernels& kernels, device::Arena& workspace, const Batch& batch,
                       const Tensor& parts) {
  const auto slots = parts.dim(1);
  const auto& [rows, columns] = batch.shape;
  MatrixBatch own;
  for (const auto index : batch.segments) {
    if (segments_[index].owner != rank()) continue;
    auto& states = own.states.emplace_back();
    for (const auto& state : owner_states_of(segments_[index])) states.push_back(state.values);
  }
  if (exchange_ == nullptr) {
    own.matrices = parts.reshape({slots, rows, columns});
    matrix_rule_->directions(kernels, workspace, own);
    return;
  }
  const MicroGroup group{
      .boxes = batch.parts,
      .parts = parts,
      .received = workspace.allocate(device::DType::f32, {ranks(), slots, parts.dim(2)}),
      .whole = workspace.allocate(device::DType::f32, {slots, rows, columns}),
      .owned = std::ssize(own.states)};
  exchange_->gather(kernels, group);
  if (group.owned > 0) {
    own.matrices = group.whole.slice(0, 0, group.owned);
    matrix_rule_->directions(kernels, workspace, own);
  }
  exchange_->scatter(kernels, group);
}

void Optimizer::update_batch(device::Kernels& kernels, device::Arena& workspace, const Batch& batch,
                             const Step& step) {
  const auto slots = *std::max_element(batch.owned.begin(), batch.owned.end());
  const auto size = largest_part(batch.shape, batch.parts);
  const device::ArenaScope scope(workspace);
  const auto parts = workspace.allocate(device::DType::f32, {ranks(), slots, size});
  const auto all = parts.reshape({ranks() * slots * size});
  const auto each = [&](const auto& act) {
    for (std::size_t index = 0; index < batch.segments.size(); ++index) {
      const auto& segment = segments_[batch.segments[index]];
      const auto place = segment.owner * slots + batch.slots[index];
      act(segment, all.slice(0, place * size, segment.flat.size()));
    }
  };
  each([&](const Segment& segment, const Tensor& own) {
    std::vector<Tensor> states;
    for (const auto& state : states_of(segment)) states.push_back(state.values);
    matrix_rule_->take(kernels, step.gradients.slice(0, segment.flat.begin, segment.flat.size()),
                       step.gradient_scale, states, own);
  });
  direct(kernels, workspace, batch, parts);
  each([&](const Segment& segment, const Tensor& direction) {
    // SGD without momentum: the velocity is the scaled direction, in its own place.
    kernels.issue(device::SgdUpdate{{.learning_rate = step.learning_rate,
                                     .momentum = 0.0F,
                                     .weight_decay = segment.decays ? rule_.weight_decay : 0.0F,
                                     .gradient_scale = matrix_rule_->factor(segment.shape),
                                     .rounding = rounding_of(segment, step.number)},
                                    direction,
                                    master(segment),
                                    direction,
                                    parameters_.slice(0, segment.flat.begin, segment.flat.size())});
  });
}

void Optimizer::update(device::Kernels& kernels, device::Arena& workspace, const Tensor& gradients,
                       float learning_rate, float gradient_scale, std::int64_t step) {
  const Step shared{gradients, learning_rate, gradient_scale, step};
  for (const auto& segment : segments_) {
    if (segment.content == Content::elements) update_elements(kernels, segment, shared);
  }
  for (const auto& batch : batches_) update_batch(kernels, workspace, batch, shared);
}

void Optimizer::give_parameters(device::Kernels& kernels, std::int64_t step) {
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
