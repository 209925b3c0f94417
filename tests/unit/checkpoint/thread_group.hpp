// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace trireme::tests {

/// Ranks that are threads of one process, for tests of collective code without MPI. Every
/// collective meets at a barrier, so a rank that leaves by an exception leaves the others waiting:
/// the code under test must fail together, and that is the point.
class ThreadGroup : public comm::ProcessGroup {
 public:
  struct Shared {
    explicit Shared(int count) : parts(static_cast<std::size_t>(count)), meeting(count) {}
    std::vector<device::Tensor> parts;
    std::barrier<> meeting;
  };

  ThreadGroup(std::shared_ptr<Shared> shared, std::vector<base::Rank> ranks, int rank)
      : ProcessGroup("world", std::move(ranks), rank), shared_(std::move(shared)) {}

  const char* backend() const override { return "threads"; }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole) override {
    publish(part);
    auto* out = static_cast<std::byte*>(whole.raw());
    for (const auto& from : shared_->parts) {
      std::memcpy(out, from.raw(), from.byte_count());
      out += from.byte_count();
    }
    shared_->meeting.arrive_and_wait();
    return {};
  }
  comm::Work start_broadcast(const device::Tensor& x, int root) override {
    publish(x);
    const auto& from = shared_->parts[static_cast<std::size_t>(root)];
    if (root != rank()) std::memcpy(x.raw(), from.raw(), from.byte_count());
    shared_->meeting.arrive_and_wait();
    return {};
  }
  void barrier() override { shared_->meeting.arrive_and_wait(); }

  /// The sum of f32, the largest i32.
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    publish(x);
    if (x.dtype() == device::DType::f32 && op == comm::ReduceOp::sum) {
      reduce(x.f32(), x.element_count(), [](float a, float b) { return a + b; });
    } else if (x.dtype() == device::DType::i32 && op == comm::ReduceOp::max) {
      reduce(x.i32(), x.element_count(),
             [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
    } else {
      return none();
    }
    return {};
  }

  // Checkpoints use none of these.
  comm::Work start_reduce_scatter(const device::Tensor&, const device::Tensor&) override {
    return none();
  }
  comm::Work start_all_to_all(const device::Tensor&, const device::Tensor&) override {
    return none();
  }
  comm::Work start_send(const device::Tensor&, int, int) override { return none(); }
  comm::Work start_receive(const device::Tensor&, int, int) override { return none(); }

 private:
  template <typename T, typename Op>
  void reduce(T* mine, std::int64_t count, const Op& op) {
    std::vector<T> total(static_cast<std::size_t>(count));
    for (const auto& from : shared_->parts) {
      const auto* values = static_cast<const T*>(from.raw());
      const bool first = &from == &shared_->parts.front();
      for (std::size_t i = 0; i < total.size(); ++i) {
        total[i] = first ? values[i] : op(total[i], values[i]);
      }
    }
    shared_->meeting.arrive_and_wait();
    std::copy(total.begin(), total.end(), mine);
  }
  static comm::Work none() { std::terminate(); }
  void publish(const device::Tensor& part) {
    shared_->parts[static_cast<std::size_t>(rank())] = part;
    shared_->meeting.arrive_and_wait();
  }
  std::shared_ptr<Shared> shared_;
};

/// Runs `body` on that many ranks; the exception of the lowest rank that has one is thrown again.
inline void run_ranks(int count, const std::function<void(comm::ProcessGroup&)>& body) {
  const auto shared = std::make_shared<ThreadGroup::Shared>(count);
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.emplace_back(rank);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          ThreadGroup group(shared, ranks, rank);
          body(group);
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace trireme::tests
