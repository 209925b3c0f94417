// SPDX-License-Identifier: Apache-2.0
#include "support/fake_nccl/group.hpp"

#include "support/simulated_gpu/group.hpp"

#include <utility>

namespace trireme::testing {
namespace {

using comm::ProcessGroup;
using comm::ReduceOp;
using comm::Work;
using device::Tensor;

/// A group, and what must outlive it.
class OwningGroup final : public ProcessGroup {
 public:
  OwningGroup(std::unique_ptr<FakeNccl> nccl, std::unique_ptr<comm::NcclGroups> groups,
              std::unique_ptr<ProcessGroup> inner)
      : ProcessGroup(inner->name(), inner->ranks(), inner->rank()),
        nccl_(std::move(nccl)),
        groups_(std::move(groups)),
        inner_(std::move(inner)) {}

  const char* backend() const override { return inner_->backend(); }
  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    return inner_->start_all_reduce(x, op);
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part,
                            const comm::Cuts& cuts) override {
    return inner_->start_reduce_scatter(whole, part, cuts);
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const comm::Cuts& cuts) override {
    return inner_->start_all_gather(part, whole, cuts);
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    return inner_->start_all_to_all(from, to);
  }
  Work start_broadcast(const Tensor& x, int root) override {
    return inner_->start_broadcast(x, root);
  }
  Work start_send(const Tensor& x, int peer, int tag) override {
    return inner_->start_send(x, peer, tag);
  }
  Work start_receive(const Tensor& x, int peer, int tag) override {
    return inner_->start_receive(x, peer, tag);
  }
  void barrier() override { inner_->barrier(); }

 private:
  std::unique_ptr<FakeNccl> nccl_;
  std::unique_ptr<comm::NcclGroups> groups_;
  std::unique_ptr<ProcessGroup> inner_;
};

}  // namespace

std::unique_ptr<FakeNccl> make_fake_nccl(comm::MpiRuntime& mpi,
                                         const std::vector<base::Rank>& ranks) {
  const comm::GroupOptions options{comm::Backend::mpi, 60};
  auto hellos = mpi.make_group("hellos", ranks, options);
  return std::make_unique<FakeNccl>(std::move(hellos), mpi.make_group("data", ranks, options));
}

std::unique_ptr<ProcessGroup> make_fake_nccl_group(comm::MpiRuntime& mpi, const std::string& name,
                                                   const std::vector<base::Rank>& ranks,
                                                   double timeout_seconds, const FakePlan& plan) {
  // First, so that what waits for absent ranks waits in the group that a test has asked for.
  auto host = mpi.make_group(name, ranks, {comm::Backend::mpi, timeout_seconds});
  const auto meeting = mpi.make_group("meeting", ranks, {comm::Backend::mpi, timeout_seconds});
  auto nccl = make_fake_nccl(mpi, ranks);
  if (plan.faults) plan.faults(*nccl);
  const Haste haste{Haste::Kind::mixed, static_cast<std::uint64_t>(mpi.world_rank().value())};
  return make_group_on_device(
      [&](device::Device& device) {
        auto groups = std::make_unique<comm::NcclGroups>(nccl->library(), mpi, *meeting, device,
                                                         comm::NcclOptions{timeout_seconds, 256});
        auto group = groups->split(std::move(host));
        return std::make_unique<OwningGroup>(std::move(nccl), std::move(groups), std::move(group));
      },
      haste, plan.ends);
}

}  // namespace trireme::testing
