// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_nccl/fake_nccl.hpp"
#include "support/simulated_gpu/group.hpp"

namespace trireme::testing {

/// A FakeNccl of these ranks.
std::unique_ptr<FakeNccl> make_fake_nccl(comm::MpiRuntime& mpi,
                                         const std::vector<base::Rank>& ranks);

/// Plan of a test: faults of the library, and how its group's operations end.
struct FakePlan {
  std::function<void(FakeNccl&)> faults{};
  Ends ends = Ends::waited;
};

/// A group over a FakeNccl of its own, for tests whose tensors lie in host memory.
std::unique_ptr<comm::ProcessGroup> make_fake_nccl_group(comm::MpiRuntime& mpi,
                                                         const std::string& name,
                                                         const std::vector<base::Rank>& ranks,
                                                         double timeout_seconds,
                                                         const FakePlan& plan = {});

}  // namespace trireme::testing
