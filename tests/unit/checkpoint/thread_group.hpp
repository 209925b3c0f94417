// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <algorithm>
#include <barrier>
#include <condition_variable>
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
  using OnTheWay = std::function<void(std::vector<std::byte>&)>;
  struct Shared {
    explicit Shared(int count) : parts(static_cast<std::size_t>(count)), meeting(count) {}
    std::vector<device::Tensor> parts;
    std::barrier<> meeting;
    /// Messages under way, by sender, receiver and tag.
    std::mutex mutex;
    std::condition_variable sent;
    std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> messages;
    /// Treatment of a message on its way.
    OnTheWay on_the_way;
  };

  ThreadGroup(std::shared_ptr<Shared> shared, std::vector<base::Rank> ranks, int rank)
      : ProcessGroup("world", std::move(ranks), rank), shared_(std::move(shared)) {}

  const char* backend() const override { return "threads"; }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& /*cuts*/) override {
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

  /// Sums, and the largest i32.
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    publish(x);
    if (x.dtype() == device::DType::f32 && op == comm::ReduceOp::sum) {
      reduce(x.f32(), x.element_count(), [](float a, float b) { return a + b; });
    } else if (x.dtype() == device::DType::i32 && op == comm::ReduceOp::sum) {
      reduce(x.i32(), x.element_count(), [](std::int32_t a, std::int32_t b) { return a + b; });
    } else if (x.dtype() == device::DType::i32 && op == comm::ReduceOp::max) {
      reduce(x.i32(), x.element_count(),
             [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
    } else {
      return none();
    }
    return {};
  }

  comm::Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override {
    publish(from);
    const auto bytes = from.byte_count() / shared_->parts.size();
    auto* out = static_cast<std::byte*>(to.raw());
    for (const auto& part : shared_->parts) {
      std::memcpy(
          out, static_cast<const std::byte*>(part.raw()) + static_cast<std::size_t>(rank()) * bytes,
          bytes);
      out += bytes;
    }
    shared_->meeting.arrive_and_wait();
    return {};
  }
  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    const auto* bytes = static_cast<const std::byte*>(x.raw());
    const std::lock_guard lock(shared_->mutex);
    auto& message =
        shared_->messages[{rank(), peer, tag}].emplace_back(bytes, bytes + x.byte_count());
    if (shared_->on_the_way) shared_->on_the_way(message);
    shared_->sent.notify_all();
    return {};
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    return comm::Work(std::make_unique<Receive>(shared_, std::tuple(peer, rank(), tag), x));
  }

  // Checkpoints do not use it.
  comm::Work start_reduce_scatter(const device::Tensor&, const device::Tensor&,
                                  const comm::Cuts&) override {
    return none();
  }

 private:
  class Receive : public comm::Work::Operation {
   public:
    Receive(std::shared_ptr<Shared> shared, std::tuple<int, int, int> what, const device::Tensor& x)
        : shared_(std::move(shared)), what_(std::move(what)), x_(x) {}
    void wait() override {
      std::unique_lock lock(shared_->mutex);
      auto& queue = shared_->messages[what_];
      shared_->sent.wait(lock, [&queue] { return !queue.empty(); });
      take(queue);
    }
    bool poll() override {
      const std::lock_guard lock(shared_->mutex);
      auto& queue = shared_->messages[what_];
      if (!done_ && !queue.empty()) take(queue);
      return done_;
    }
    bool done() const override { return done_; }

   private:
    void take(std::deque<std::vector<std::byte>>& queue) {
      if (queue.front().size() != x_.byte_count()) std::terminate();
      std::memcpy(x_.raw(), queue.front().data(), x_.byte_count());
      queue.pop_front();
      done_ = true;
    }

    std::shared_ptr<Shared> shared_;
    std::tuple<int, int, int> what_;
    device::Tensor x_;
    bool done_ = false;
  };

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
inline void run_ranks(int count, const std::function<void(comm::ProcessGroup&)>& body,
                      const ThreadGroup::OnTheWay& on_the_way = {}) {
  const auto shared = std::make_shared<ThreadGroup::Shared>(count);
  shared->on_the_way = on_the_way;
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
