#pragma once

#include "mpi/training/training.hpp"
#include "support/detached/device.hpp"
#include "support/fake_nccl/group.hpp"

#include <vector>

/// Training on a detached device whose groups a stand-in for NCCL serves.
namespace trireme::testing {

inline constexpr int steps = 4;

std::vector<base::Rank> everybody();
/// Tensor-parallel ranks where there are two, all three axes where there are eight.
layout::Mesh mesh_of_world();
engine::EngineOptions options_for(const layout::Mesh& mesh, int zero_level);
std::vector<Observed> train_over_nccl(
    FakeNccl& nccl, const engine::EngineOptions& options, Haste haste = {},
    comm::NcclRegistration registration = comm::NcclRegistration::buffers);

}  // namespace trireme::testing
