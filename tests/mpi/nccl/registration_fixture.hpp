// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl_memory.hpp"

#include "mpi/behaviour/group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

#include <memory>
#include <vector>

namespace trireme::testing {

inline std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

inline const std::vector<device::Purpose> shared_purposes{device::Purpose::parameters,
                                                          device::Purpose::gradients};

/// A group of all ranks on a device, and gradients of NCCL's or of the device.
struct RegistrationFixture {
  explicit RegistrationFixture(comm::NcclRegistration registration) {
    comm::NcclOptions options;
    options.timeout_seconds = 30;
    options.registration = registration;
    groups = std::make_unique<comm::NcclGroups>(nccl->library(), mpi(), *world, device, options);
    group = groups->split(mpi().make_world({comm::Backend::mpi, 30}));
    shared = comm::with_nccl_memory(device, nccl->library(), shared_purposes);
  }

  std::unique_ptr<FakeNccl> nccl = make_fake_nccl(mpi(), everybody());
  std::unique_ptr<ProcessGroup> world = mpi().make_world({comm::Backend::mpi, 30});
  SimulatedDevice device{Haste{Haste::Kind::lazy, 0}};
  std::unique_ptr<device::Device> shared;
  std::unique_ptr<comm::NcclGroups> groups;
  std::unique_ptr<ProcessGroup> group;
};

/// Whether a sum of ones in this memory is the number of ranks.
inline bool sums_up(RegistrationFixture& fixture, const Tensor& values) {
  const std::vector<float> ones(static_cast<std::size_t>(values.element_count()), 1.0F);
  fixture.device.copy_in(ones.data(), values);
  fixture.group->all_reduce(values);
  std::vector<float> sums(ones.size());
  fixture.device.copy_out(values, sums.data());
  fixture.device.synchronize();
  return sums == std::vector<float>(ones.size(), static_cast<float>(fixture.group->size()));
}

}  // namespace trireme::testing
