// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/group.hpp"

#include "trireme/comm/staged.hpp"

#include "support/simulated_gpu/device.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace trireme::testing {
namespace {

using comm::ReduceOp;
using comm::Work;
using device::Tensor;

/// Tensors of one operation on the device; one may lie inside the other.
class Moved {
 public:
  Moved(device::Device& device, const Tensor& outer, const Tensor& inner)
      : device_(device),
        outer_(outer),
        inner_(inner),
        arena_(
            device.arena(device::Purpose::communication,
                         outer.byte_count() + inner.byte_count() + 2 * device::Arena::alignment)),
        there_(arena_.allocate(outer.dtype(), {outer.element_count()})) {
    device_.copy_in(outer_.raw(), there_);
    const auto* begin = static_cast<const std::byte*>(outer.raw());
    const auto* at = static_cast<const std::byte*>(inner.raw());
    inside_ = at != nullptr && at >= begin && at < begin + outer.byte_count();
    if (inside_) {
      inner_there_ = inner.moved_to(static_cast<std::byte*>(there_.raw()) + (at - begin));
    } else {
      inner_there_ = arena_.allocate(inner.dtype(), {inner.element_count()});
      device_.copy_in(inner.raw(), inner_there_);
    }
  }

  const Tensor& outer() const { return there_; }
  const Tensor& inner() const { return inner_there_; }
  void bring_back() {
    device_.copy_out(there_, outer_.raw());
    if (!inside_) device_.copy_out(inner_there_, inner_.raw());
    device_.synchronize();
  }

 private:
  device::Device& device_;
  Tensor outer_;
  Tensor inner_;
  device::Arena arena_;
  Tensor there_;
  Tensor inner_there_;
  bool inside_ = false;
};

class MovedOperation final : public Work::Operation {
 public:
  MovedOperation(std::unique_ptr<Moved> moved, Work work, Ends ends)
      : moved_(std::move(moved)), work_(std::move(work)), ends_(ends) {}

  bool poll() override {
    if (!work_.poll()) return false;
    moved_->bring_back();
    return true;
  }
  void wait() override {
    if (ends_ == Ends::joined) {
      work_.wait_on_stream();
    } else {
      work_.wait();
    }
    moved_->bring_back();
  }
  bool done() const override { return false; }

 private:
  std::unique_ptr<Moved> moved_;
  Work work_;
  Ends ends_;
};

class GroupOnDevice final : public comm::ProcessGroup {
 public:
  GroupOnDevice(std::unique_ptr<SimulatedDevice> device, std::unique_ptr<comm::ProcessGroup> inner,
                Ends ends)
      : ProcessGroup(inner->name(), inner->ranks(), inner->rank()),
        device_(std::move(device)),
        inner_(std::move(inner)),
        ends_(ends) {}

  const char* backend() const override { return inner_->backend(); }

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    return start(x, {}, [&](const Tensor& there, const Tensor&) {
      return inner_->start_all_reduce(there, op);
    });
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part,
                            const comm::Cuts& cuts) override {
    return start(whole, part, [&](const Tensor& whole_there, const Tensor& part_there) {
      return inner_->start_reduce_scatter(whole_there, part_there, cuts);
    });
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const comm::Cuts& cuts) override {
    return start(whole, part, [&](const Tensor& whole_there, const Tensor& part_there) {
      return inner_->start_all_gather(part_there, whole_there, cuts);
    });
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    return start(from, to, [&](const Tensor& from_there, const Tensor& to_there) {
      return inner_->start_all_to_all(from_there, to_there);
    });
  }
  Work start_broadcast(const Tensor& x, int root) override {
    return start(x, {}, [&](const Tensor& there, const Tensor&) {
      return inner_->start_broadcast(there, root);
    });
  }
  Work start_send(const Tensor& x, int peer, int tag) override {
    return start(x, {}, [&](const Tensor& there, const Tensor&) {
      return inner_->start_send(there, peer, tag);
    });
  }
  Work start_receive(const Tensor& x, int peer, int tag) override {
    return start(x, {}, [&](const Tensor& there, const Tensor&) {
      return inner_->start_receive(there, peer, tag);
    });
  }
  void barrier() override { inner_->barrier(); }

 private:
  Work start(const Tensor& outer, const Tensor& inner,
             const std::function<Work(const Tensor&, const Tensor&)>& begin) {
    auto moved = std::make_unique<Moved>(*device_, outer, inner);
    auto work = begin(moved->outer(), moved->inner());
    auto operation = std::make_unique<MovedOperation>(std::move(moved), std::move(work), ends_);
    if (operation->poll()) return {};
    return Work(std::move(operation));
  }

  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<comm::ProcessGroup> inner_;
  Ends ends_;
};

}  // namespace

std::unique_ptr<comm::ProcessGroup> make_group_on_device(const MakeGroup& make, Haste haste,
                                                         Ends ends) {
  auto device = std::make_unique<SimulatedDevice>(haste);
  auto inner = make(*device);
  return std::make_unique<GroupOnDevice>(std::move(device), std::move(inner), ends);
}

std::unique_ptr<comm::ProcessGroup> make_group_on_device(std::unique_ptr<comm::ProcessGroup> host,
                                                         Haste haste, std::size_t piece_bytes) {
  return make_group_on_device(
      [&](device::Device& device) {
        return comm::make_staged_group(std::move(host), device, piece_bytes);
      },
      haste);
}

}  // namespace trireme::testing
