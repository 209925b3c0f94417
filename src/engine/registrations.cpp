// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/registrations.hpp"

namespace trireme::engine {

using comm::Offsets;
using device::Purpose;
using device::Tensor;
using layout::Axis;

namespace {

void keep(std::unique_ptr<comm::Registration> registration, Registrations& registrations) {
  if (registration) registrations.push_back(std::move(registration));
}

/// Offsets of the arenas: heads are split evenly, the vocabulary and the MLP perhaps not; arenas
/// are then filled differently on each rank.
Offsets offsets_of(const model::ModelConfig& model, int tensor_degree) {
  const bool even =
      model.vocab_size % tensor_degree == 0 && model.intermediate_size % tensor_degree == 0;
  return even ? Offsets::same : Offsets::own;
}

}  // namespace

void register_arenas(const model::ModelConfig& model, const comm::AxisGroups& groups,
                     Memory& memory, Registrations& registrations) {
  if (groups.on(Axis::tensor).size() > 1) {
    const auto offsets = offsets_of(model, groups.on(Axis::tensor).size());
    for (const auto purpose : {Purpose::activations, Purpose::workspace, Purpose::communication}) {
      keep(groups.on(Axis::tensor).register_memory(memory.of(purpose).whole(), offsets),
           registrations);
    }
  }
  if (auto* const context = groups.if_any(Axis::context)) {
    keep(context->register_memory(memory.of(Purpose::workspace).whole(), Offsets::same),
         registrations);
  }
  if (groups.on(Axis::pipeline).size() > 1) {
    keep(groups.on(Axis::pipeline).register_for_messages(memory.of(Purpose::communication).whole()),
         registrations);
  }
}

void register_flat(const comm::AxisGroups& groups, const FlatMemory& parameters,
                   const FlatMemory& gradients, Registrations& registrations) {
  if (auto& replicas = groups.replicas(); replicas.size() > 1) {
    keep(replicas.register_memory(parameters.values, parameters.offsets), registrations);
    keep(replicas.register_memory(gradients.values, gradients.offsets), registrations);
  }
  // First and last stage hold other layers beside the table that they share.
  if (groups.ends() != nullptr && groups.ends()->size() > 1) {
    keep(groups.ends()->register_memory(gradients.values, Offsets::own), registrations);
  }
}

}  // namespace trireme::engine
