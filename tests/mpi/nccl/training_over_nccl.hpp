// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mpi/training/training.hpp"
#include "support/fake_nccl/group.hpp"
#include "support/simulated_gpu/device.hpp"

#include <vector>

namespace trireme::testing {

inline constexpr int steps_over_nccl = 4;

std::vector<base::Rank> everybody();
/// Mesh of as many ranks as there are, with more of tensor parallelism where they are few.
layout::Mesh mesh_of_world();
engine::EngineOptions options_for(const layout::Mesh& mesh, int zero_level);

/// This rank's groups of a mesh, for tensors of the device.
comm::OwnedAxisGroups groups_over_nccl(FakeNccl& nccl, const layout::Mesh& mesh,
                                       device::Device& device, comm::NcclRegistration registration);
/// Some steps in memory of the caller's.
std::vector<Observed> train_in(engine::Memory& memory, const engine::EngineOptions& options,
                               const comm::OwnedAxisGroups& groups, device::Kernels& kernels);
/// Some steps on a simulated GPU.
std::vector<Observed> train_over_nccl(
    FakeNccl& nccl, const engine::EngineOptions& options, Haste haste = {},
    comm::NcclRegistration registration = comm::NcclRegistration::buffers);

}  // namespace trireme::testing
