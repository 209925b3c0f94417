// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

namespace trireme::testing {

/// A group that lets another one do everything; what derives from it does some of it otherwise.
class ForwardedGroup : public comm::ProcessGroup {
 public:
  /// `inner` outlives it.
  explicit ForwardedGroup(comm::ProcessGroup& inner)
      : ProcessGroup(inner.name(), inner.ranks(), inner.rank()), inner_(inner) {}

  const char* backend() const override { return inner_.backend(); }
  ProcessGroup& host_group() override { return inner_.host_group(); }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    return inner_.start_all_reduce(x, op);
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    return inner_.start_reduce_scatter(whole, part, cuts);
  }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    return inner_.start_all_gather(part, whole, cuts);
  }
  comm::Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override {
    return inner_.start_all_to_all(from, to);
  }
  comm::Work start_broadcast(const device::Tensor& x, int root) override {
    return inner_.start_broadcast(x, root);
  }
  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    return inner_.start_send(x, peer, tag);
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    return inner_.start_receive(x, peer, tag);
  }
  void barrier() override { inner_.barrier(); }

 protected:
  comm::ProcessGroup& inner_;
};

}  // namespace trireme::testing
