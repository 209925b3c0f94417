// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/axis_groups.hpp"
#include "trireme/comm/process_group.hpp"

#include "support/device/flights.hpp"

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::testing {

/// Group whose operations are flights from their start until they are waited for, even if they have
/// nothing left to do before.
class WatchedGroup final : public comm::ProcessGroup {
 public:
  WatchedGroup(std::unique_ptr<comm::ProcessGroup> inner, Flights& flights)
      : ProcessGroup(inner->name(), inner->ranks(), inner->rank()),
        inner_(std::move(inner)),
        flights_(flights) {}

  const char* backend() const override { return inner_->backend(); }
  ProcessGroup& host_group() override { return inner_->host_group(); }
  bool moves_by_itself() const override { return inner_->moves_by_itself(); }

  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    return watched("all_reduce", {{x, Role::in_out}}, inner_->start_all_reduce(x, op));
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    return watched("reduce_scatter", {{whole, Role::input}, {part, Role::output}},
                   inner_->start_reduce_scatter(whole, part, cuts));
  }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    return watched("all_gather", {{part, Role::input}, {whole, Role::output}},
                   inner_->start_all_gather(part, whole, cuts));
  }
  comm::Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override {
    return watched("all_to_all", {{from, Role::input}, {to, Role::output}},
                   inner_->start_all_to_all(from, to));
  }
  comm::Work start_broadcast(const device::Tensor& x, int root) override {
    return watched("broadcast", {{x, Role::in_out}}, inner_->start_broadcast(x, root));
  }
  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    return watched("send", {{x, Role::input}}, inner_->start_send(x, peer, tag));
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    return watched("receive", {{x, Role::output}}, inner_->start_receive(x, peer, tag));
  }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<comm::Registration> register_memory(const device::Tensor& memory,
                                                      comm::Offsets offsets) override {
    return inner_->register_memory(memory, offsets);
  }
  std::unique_ptr<comm::Registration> register_for_messages(const device::Tensor& memory) override {
    return inner_->register_for_messages(memory);
  }

 private:
  using Role = device::Role;

  class Watched final : public comm::Work::Operation {
   public:
    Watched(Flights& flights, comm::Work work) : flights_(flights), work_(std::move(work)) {}
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() override { land(); }
    void add(Flights::Place place) { places_.push_back(place); }

    bool poll() override {
      if (!work_.poll()) return false;
      land();
      return true;
    }
    void wait() override {
      work_.wait();
      land();
    }
    bool done() const override { return places_.empty(); }
    void wait_on_stream(std::unique_ptr<Operation> /*self*/) override {
      work_.wait_on_stream();
      land();
    }

   private:
    void land() {
      for (const auto place : places_) flights_.end(place);
      places_.clear();
    }

    Flights& flights_;
    comm::Work work_;
    std::vector<Flights::Place> places_;
  };

  comm::Work watched(const char* operation, std::initializer_list<Flights::Operand> operands,
                     comm::Work work) {
    auto watched = std::make_unique<Watched>(flights_, std::move(work));
    for (const auto& operand : operands) watched->add(flights_.begin(operation, operand));
    return comm::Work(std::move(watched));
  }

  std::unique_ptr<comm::ProcessGroup> inner_;
  Flights& flights_;
};

/// The group itself where the device watches nothing.
inline std::unique_ptr<comm::ProcessGroup> watched_on(device::Device& device,
                                                      std::unique_ptr<comm::ProcessGroup> group) {
  auto* const watches = dynamic_cast<WatchesFlights*>(&device);
  if (watches == nullptr) return group;
  return std::make_unique<WatchedGroup>(std::move(group), watches->flights());
}

}  // namespace trireme::testing
