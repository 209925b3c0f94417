// SPDX-License-Identifier: Apache-2.0
#include "matrix_updates.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>

namespace trireme::optim {

using device::DType;
using device::Tensor;

namespace {

/// Elements of the matrices that are updated together: enough to keep all threads busy with small
/// ones, few enough that their workspace stays small beside a model.
constexpr std::int64_t run_elements = std::int64_t{1} << 22;

/// Groups whose parts have memory: while one computes, the next comes in and the last goes out.
constexpr std::size_t under_way = 3;

/// The number of updates of states at an owner, which is the last of them; empty where there are
/// none.
Tensor update_count(const std::vector<NamedState>& owner_states) {
  return owner_states.empty() ? Tensor{} : owner_states.back().values;
}

}  // namespace

MatrixUpdates::MatrixUpdates(const Rule& rule, const OptimizerState& state, const Peers& peers)
    : state_(state),
      rule_(*state.matrix_rule()),
      weight_decay_(rule.weight_decay),
      root_every_(rule.factors.root_every),
      peers_(peers) {
  int rank = 0;
  auto group_elements = run_elements;
  if (peers.exchange != nullptr) {
    exchange_.emplace(*peers.exchange);
    ranks_ = peers.exchange->size();
    rank = peers.exchange->rank();
    group_elements = std::max<std::int64_t>(1, rule.group_bytes / std::int64_t{sizeof(float)});
  }
  groups_ = form_groups(state.segments(), ranks_, rank, {group_elements, run_elements});
}

ExchangeTimes MatrixUpdates::take_exchange_times() {
  return exchange_ ? exchange_->take_times() : ExchangeTimes{};
}

/// Reads the numbers of updates once: the host counts on, and waits for no device in a step.
void MatrixUpdates::read_update_counts(const UpdateStep& step) {
  if (!state_.owner_states() || !update_counts_.empty()) return;
  const auto& segments = state_.segments();
  // One that does all that any does, where nothing is computed and nothing can be read.
  for (const auto& segment : segments) {
    update_counts_.push_back(root_every_ + segment.renewal_turn);
  }
  if (step.workspace.is_measuring()) return;
  device::HostMirror mirror(step.kernels.device());
  std::vector<Tensor> counts;
  for (const auto& segment : segments) {
    counts.push_back(mirror.of(update_count(state_.owner_states_of(segment))));
  }
  mirror.fetch();
  for (std::size_t index = 0; index < counts.size(); ++index) {
    if (counts[index]) update_counts_[index] = static_cast<std::int64_t>(counts[index].f32()[0]);
  }
}

std::vector<MatrixUpdates::Part> MatrixUpdates::prepare_shared(
    const UpdateStep& step, std::vector<SharedUpdate>& shared) const {
  std::vector<Part> parts;
  for (const auto& segment : state_.segments()) {
    if (!segment.sharing) continue;
    TRIREME_EXPECT(rule_.iteration() != nullptr && peers_.sharing != nullptr,
                   "a rule for shared matrices, and a group that shares them");
    const SharingContext context{*rule_.iteration(), state_.parameter_type(), *peers_.sharing,
                                 step.kernels, step.workspace};
    const auto& update = shared.emplace_back(context, segment.shape, *segment.sharing);
    parts.push_back({&segment, update.held().flat()});
  }
  prepare(step, parts);
  return parts;
}

std::vector<MatrixUpdates::GroupMemory> MatrixUpdates::allocate_groups(
    device::Arena& workspace) const {
  std::int64_t region = 0;
  std::int64_t owned = 1;
  for (const auto& group : groups_) {
    region = std::max(region, group.region);
    owned = std::max(owned, group.owned_elements);
  }
  // Order: what is exchanged lies at the same offsets on all ranks, which own different matrices.
  std::vector<Tensor> exchanged;  // f32 [ranks * largest region]: parts and received, in turn
  const auto count = exchange_ ? 2 * std::min(under_way, groups_.size()) : 0;
  while (exchanged.size() < count) {
    exchanged.push_back(workspace.allocate(DType::f32, {ranks_ * region}));
  }
  const auto whole = workspace.allocate(DType::f32, {owned});
  std::vector<GroupMemory> memory;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const auto& group = groups_[index];
    const auto of_group = [&](const Tensor& all) {
      return all.slice(0, 0, ranks_ * group.region).reshape({ranks_, group.region});
    };
    const auto slot = 2 * (index % under_way);
    auto& [parts, own_whole, micro] = memory.emplace_back();
    own_whole = whole;
    micro.parts = of_group(exchange_ ? exchanged[slot] : whole);
    if (exchange_) micro.received = of_group(exchanged[slot + 1]);
    for (const auto& [index_of_segment, begin] : group.members) {
      const auto& segment = state_.segments()[index_of_segment];
      parts.push_back({&segment, micro.parts.flat().slice(0, begin, segment.flat.size())});
    }
    for (const auto& run : group.owned) {
      const auto& [rows, columns] = run.shape;
      auto begin = run.begin;
      for (const auto segment : run.segments) {
        micro.owned.push_back({&state_.segments()[segment].parts,
                               whole.slice(0, begin, rows * columns).reshape({rows, columns})});
        begin += rows * columns;
      }
    }
  }
  return memory;
}

void MatrixUpdates::prepare(const UpdateStep& step, const std::vector<Part>& parts) const {
  for (const auto& [segment, values] : parts) {
    std::vector<Tensor> states;
    for (const auto& state : state_.of(*segment)) states.push_back(state.values);
    rule_.prepare(step.kernels, step.gradient(*segment), step.gradient_scale, states, values);
  }
}

/// Directions of the matrices that are owned here, in place of what the rule prepared.
void MatrixUpdates::compute(const UpdateStep& step, const MatrixGroup& group, const Tensor& whole) {
  for (const auto& run : group.owned) {
    const auto count = std::ssize(run.segments);
    const auto& [rows, columns] = run.shape;
    MatrixBatch batch;
    batch.matrices = whole.slice(0, run.begin, count * rows * columns)
                         .reshape({count * run.blocks, rows / run.blocks, columns});
    std::vector<Tensor> counts;
    for (const auto segment : run.segments) {
      const auto states = state_.owner_states_of(state_.segments()[segment]);
      if (states.empty()) continue;
      TRIREME_EXPECT(run.blocks == 1, "a matrix with state at its owner is one block");
      auto& of_matrix = batch.states.emplace_back();
      for (const auto& state : states) of_matrix.push_back(state.values);
      of_matrix.pop_back();
      counts.push_back(update_count(states));
      batch.updates.push_back(update_counts_[segment]++);
      batch.turns.push_back(state_.segments()[segment].renewal_turn);
    }
    rule_.compute(step.kernels, step.workspace, batch);
    for (std::size_t index = 0; index < counts.size(); ++index) {
      const auto updates = static_cast<float>(batch.updates[index] + 1);
      step.kernels.issue(device::Fill{counts[index], updates});
    }
    if (exchange_) exchange_->poll();
  }
}

void MatrixUpdates::apply(const UpdateStep& step, const std::vector<Part>& parts) const {
  for (const auto& [segment, direction] : parts) {
    const auto& [rows, columns] = segment->shape;
    // SGD without momentum: the velocity is the scaled direction, in its own place.
    step.kernels.issue(device::SgdUpdate{
        .rule = {.learning_rate = step.learning_rate,
                 .momentum = 0.0F,
                 .weight_decay = segment->decays ? weight_decay_ : 0.0F,
                 .gradient_scale = rule_.factor({rows / segment->blocks, columns}),
                 .rounding = state_.rounding(*segment, step.number)},
        .gradient = direction,
        .master = state_.master(*segment),
        .momentum = direction,
        .parameter = state_.parameter(*segment)});
  }
}

/// Matrices that are whole here, and beside them those that others share: of these a phase at a
/// time, so that what others send comes meanwhile.
void MatrixUpdates::update(const UpdateStep& step, const ElementUpdates& elements) {
  read_update_counts(step);
  auto* const exchange = exchange_ && !groups_.empty() ? &*exchange_ : nullptr;
  if (exchange == nullptr) elements.update(step);
  const device::ArenaScope scope(step.workspace);
  std::vector<SharedUpdate> shared;
  const auto shared_parts = prepare_shared(step, shared);
  bool more = run_phase(shared);
  // Order: with an exchange, messages of shared matrices end before its collectives begin.
  while (exchange_ && more) more = run_phase(shared);
  if (exchange != nullptr) {
    update_exchanged(step, elements, *exchange);
  } else {
    const auto memory = allocate_groups(step.workspace);
    for (std::size_t index = 0; index < groups_.size(); ++index) {
      prepare(step, memory[index].parts);
      compute(step, groups_[index], memory[index].whole);
      apply(step, memory[index].parts);
      more = run_phase(shared);
    }
  }
  while (more) more = run_phase(shared);
  apply(step, shared_parts);
}

/// While a group's matrices are with their owners, parts of the next are under way to theirs, and
/// directions of the one before on their way back. Elements are updated beside the first.
void MatrixUpdates::update_exchanged(const UpdateStep& step, const ElementUpdates& elements,
                                     PartExchange& exchange) {
  const auto memory = allocate_groups(step.workspace);
  const auto start = [&](std::size_t index) {
    prepare(step, memory[index].parts);
    exchange.start_gather(memory[index].exchanged);
  };
  const auto finish = [&](std::size_t index) {
    exchange.finish_scatter();
    apply(step, memory[index].parts);
  };
  start(0);
  elements.update(step);
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (index + 1 < groups_.size()) start(index + 1);
    exchange.finish_gather(step.kernels, memory[index].exchanged);
    compute(step, groups_[index], memory[index].whole);
    exchange.start_scatter(step.kernels, memory[index].exchanged);
    if (index > 0) finish(index - 1);
  }
  finish(groups_.size() - 1);
}

}  // namespace trireme::optim
