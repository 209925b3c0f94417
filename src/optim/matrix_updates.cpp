// SPDX-License-Identifier: Apache-2.0
// Update of whole matrices, in groups that their owners have at a time.
#include "trireme/base/contract.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/part_exchange.hpp"

#include "micro_groups.hpp"
#include "shared_updates.hpp"
#include "step.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace trireme::optim {

using device::DType;
using device::Tensor;

namespace {

/// Elements of the matrices that are updated together: enough to keep all threads busy with small
/// ones, few enough that their workspace stays small beside a model.
constexpr std::int64_t run_elements = std::int64_t{1} << 22;

/// Groups whose parts have memory: while one computes, the next comes in and the last goes out.
constexpr std::size_t under_way = 3;

}  // namespace

/// Memory of the groups under way, each as long as the largest needs.
struct Optimizer::GroupMemory {
  struct Parts {
    Tensor parts;     // f32 [ranks * largest region]
    Tensor received;  // f32 [ranks * largest region]
  };
  std::array<Parts, under_way> exchanged;
  Tensor whole;  // f32 [largest of owned elements]
};

void Optimizer::form_groups() {
  const auto whole = exchange_ != nullptr ? std::max<std::int64_t>(
                                                1, rule_.group_bytes / std::int64_t{sizeof(float)})
                                          : run_elements;
  groups_ = optim::form_groups(segments_, ranks(), rank(), {whole, run_elements});
}

Optimizer::GroupMemory Optimizer::memory_of_groups(device::Arena& workspace) const {
  std::int64_t region = 0;
  std::int64_t owned = 0;
  for (const auto& group : groups_) {
    region = std::max(region, group.region);
    owned = std::max(owned, group.owned_elements);
  }
  GroupMemory memory;
  // Order: what is exchanged lies at the same offsets on all ranks, which own different matrices.
  const auto exchanged = exchange_ != nullptr ? std::min(under_way, groups_.size()) : 0;
  for (std::size_t index = 0; index < exchanged; ++index) {
    auto& [parts, received] = memory.exchanged[index];
    parts = workspace.allocate(DType::f32, {ranks() * region});
    received = workspace.allocate(DType::f32, {ranks() * region});
  }
  memory.whole = workspace.allocate(DType::f32, {std::max<std::int64_t>(1, owned)});
  return memory;
}

/// The group in the memory that is its own while it is under way.
MicroGroup Optimizer::micro_group(std::size_t group, const GroupMemory& memory) const {
  const auto region = groups_[group].region;
  const auto& [parts, received] = memory.exchanged[group % under_way];
  const auto of_group = [&](const Tensor& all) {
    return all.slice(0, 0, ranks() * region).reshape({ranks(), region});
  };
  MicroGroup micro{of_group(parts), of_group(received), {}};
  for (const auto& run : groups_[group].owned) {
    const auto size = run.shape.rows * run.shape.columns;
    auto begin = run.begin;
    for (const auto segment : run.segments) {
      micro.owned.push_back(
          {&segments_[segment].parts,
           memory.whole.slice(0, begin, size).reshape({run.shape.rows, run.shape.columns})});
      begin += size;
    }
  }
  return micro;
}

/// The part of a matrix that this rank holds: first what the rule takes, then its direction.
Tensor Optimizer::own_part(std::size_t group, std::size_t member, const GroupMemory& memory) const {
  const auto& [segment, begin] = groups_[group].members[member];
  const auto& all = exchange_ != nullptr ? memory.exchanged[group % under_way].parts : memory.whole;
  return all.slice(0, begin, segments_[segment].flat.size());
}

void Optimizer::take(device::Kernels& kernels, const Segment& segment, const Tensor& to,
                     const Step& step) const {
  std::vector<Tensor> states;
  for (const auto& state : states_of(segment)) states.push_back(state.values);
  matrix_rule_->take(kernels, step.gradients.slice(0, segment.flat.begin, segment.flat.size()),
                     step.gradient_scale, states, to);
}

void Optimizer::take(device::Kernels& kernels, std::size_t group, const GroupMemory& memory,
                     const Step& step) const {
  for (std::size_t member = 0; member < groups_[group].members.size(); ++member) {
    const auto& segment = segments_[groups_[group].members[member].segment];
    take(kernels, segment, own_part(group, member, memory), step);
  }
}

/// Directions of the matrices that are owned here, in place of what the rule took.
void Optimizer::direct(device::Kernels& kernels, device::Arena& workspace, const MatrixGroup& group,
                       const Tensor& whole) {
  for (const auto& run : group.owned) {
    const auto count = std::ssize(run.segments);
    const auto& [rows, columns] = run.shape;
    MatrixBatch batch;
    batch.matrices = whole.slice(0, run.begin, count * rows * columns)
                         .reshape({count * run.blocks, rows / run.blocks, columns});
    for (const auto segment : run.segments) {
      const auto states = owner_states_of(segments_[segment]);
      if (states.empty()) continue;
      TRIREME_EXPECT(run.blocks == 1, "a matrix with state at its owner is one block");
      auto& of_matrix = batch.states.emplace_back();
      for (const auto& state : states) of_matrix.push_back(state.values);
      of_matrix.pop_back();
      batch.updates.push_back(updates_[segment]++);
    }
    matrix_rule_->directions(kernels, workspace, batch);
    for (const auto segment : run.segments) {
      const auto updates = update_count(segments_[segment]);
      if (updates) kernels.issue(device::Fill{updates, static_cast<float>(updates_[segment])});
    }
    if (exchange_ != nullptr) exchange_->poll();
  }
}

void Optimizer::apply(device::Kernels& kernels, const Segment& segment, const Tensor& direction,
                      const Step& step) {
  const auto& [rows, columns] = segment.shape;
  // SGD without momentum: the velocity is the scaled direction, in its own place.
  kernels.issue(device::SgdUpdate{
      .rule = {.learning_rate = step.learning_rate,
               .momentum = 0.0F,
               .weight_decay = segment.decays ? rule_.weight_decay : 0.0F,
               .gradient_scale = matrix_rule_->factor({rows / segment.blocks, columns}),
               .rounding = rounding_of(segment, step.number)},
      .gradient = direction,
      .master = master(segment),
      .momentum = direction,
      .parameter = parameters_.slice(0, segment.flat.begin, segment.flat.size())});
}

void Optimizer::apply(device::Kernels& kernels, std::size_t group, const GroupMemory& memory,
                      const Step& step) {
  for (std::size_t member = 0; member < groups_[group].members.size(); ++member) {
    const auto& segment = segments_[groups_[group].members[member].segment];
    apply(kernels, segment, own_part(group, member, memory), step);
  }
}

/// The part of a shared matrix that this rank holds: first what the rule takes, then its direction.
struct Optimizer::SharedPart {
  const Segment* segment = nullptr;
  Tensor elements;  // f32, flat
};

std::vector<Optimizer::SharedPart> Optimizer::take_shared(device::Kernels& kernels,
                                                          device::Arena& workspace,
                                                          const Step& step,
                                                          std::vector<SharedUpdate>& shared) const {
  std::vector<SharedPart> parts;
  for (const auto& segment : segments_) {
    if (!segment.sharing) continue;
    TRIREME_EXPECT(matrix_rule_->iteration() != nullptr && sharing_ != nullptr,
                   "a rule for shared matrices, and a group that shares them");
    const SharingContext context{*matrix_rule_->iteration(), parameters_.dtype(), *sharing_,
                                 kernels, workspace};
    const auto& update = shared.emplace_back(context, segment.shape, *segment.sharing);
    parts.push_back({&segment, update.held().flat()});
    take(kernels, segment, parts.back().elements, step);
  }
  return parts;
}

/// Matrices that are whole here, and beside them those that others share: of these a phase at a
/// time, so that what others send comes meanwhile.
void Optimizer::update_matrices(device::Kernels& kernels, device::Arena& workspace,
                                const Step& step) {
  if (!matrix_rule_) return;
  const device::ArenaScope scope(workspace);
  std::vector<SharedUpdate> shared;
  const auto parts = take_shared(kernels, workspace, step, shared);
  bool more = run_phase(shared);
  // Order: with an exchange, messages of shared matrices end before its collectives begin.
  while (exchange_ != nullptr && more) more = run_phase(shared);
  if (exchange_ != nullptr && !groups_.empty()) {
    update_with_exchange(kernels, workspace, step);
  } else {
    const auto memory = memory_of_groups(workspace);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      take(kernels, group, memory, step);
      direct(kernels, workspace, groups_[group], memory.whole);
      apply(kernels, group, memory, step);
      more = run_phase(shared);
    }
  }
  while (more) more = run_phase(shared);
  for (const auto& part : parts) apply(kernels, *part.segment, part.elements, step);
}

/// While a group's matrices are with their owners, parts of the next are under way to theirs, and
/// directions of the one before on their way back. Elements are updated beside the first.
void Optimizer::update_with_exchange(device::Kernels& kernels, device::Arena& workspace,
                                     const Step& step) {
  const auto memory = memory_of_groups(workspace);
  const auto start = [&](std::size_t group) {
    take(kernels, group, memory, step);
    exchange_->start_gather(micro_group(group, memory));
  };
  const auto finish = [&](std::size_t group) {
    exchange_->finish_scatter(micro_group(group, memory));
    apply(kernels, group, memory, step);
  };
  start(0);
  update_all_elements(kernels, step);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (group + 1 < groups_.size()) start(group + 1);
    const auto own = micro_group(group, memory);
    exchange_->finish_gather(kernels, own);
    direct(kernels, workspace, groups_[group], memory.whole);
    exchange_->start_scatter(kernels, own);
    if (group > 0) finish(group - 1);
  }
  finish(groups_.size() - 1);
}

}  // namespace trireme::optim
