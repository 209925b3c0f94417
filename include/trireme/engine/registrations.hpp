// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"

#include <memory>
#include <vector>

namespace trireme::engine {

using Registrations = std::vector<std::unique_ptr<comm::Registration>>;

/// Collective over the tensor-parallel group. Registers with it, and with the pipeline's messages,
/// the whole arenas that they work in: activations change their places in them. The registrations
/// end before memory and groups do.
void register_arenas(const model::ModelConfig& model, const comm::AxisGroups& groups,
                     Memory& memory, Registrations& registrations);

/// A flat tensor, and where in it the ranks' operations work.
struct FlatMemory {
  device::Tensor values;
  comm::Offsets offsets = comm::Offsets::same;
};

/// Registers flat tensors; collective over the data-parallel group and that of tied embeddings.
void register_flat(const comm::AxisGroups& groups, const FlatMemory& parameters,
                   const FlatMemory& gradients, Registrations& registrations);

}  // namespace trireme::engine
