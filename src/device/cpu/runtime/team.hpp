// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/compute_threads.hpp"

#include "device/cpu/runtime/spinning.hpp"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

namespace trireme::device::cpu {

/// Compute threads: the caller and those that wait beside it. One thread calls at a time, and no
/// body calls its own team.
class Team {
 public:
  /// A node that has no room for so many threads ends in base::Error (ExitCode::topology).
  explicit Team(int threads, ThreadWait wait = {});
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int size() const { return static_cast<int>(seats_.size()); }

  /// body(part) for every part in [0, parts), at most size() of them; done when this returns. Part
  /// 0 is the caller's, every other one has a thread of its own; a part whose thread has not come
  /// by the time that the caller is done with its own is the caller's, too, so that no call waits
  /// for a thread that gets no core. The body throws nothing.
  template <typename Body>
  void run(int parts, const Body& body) {
    run(parts,
        Call{[](const void* each, int part) { (*static_cast<const Body*>(each))(part); }, &body});
  }

 private:
  struct Call {
    void (*run)(const void* body, int part) = nullptr;
    const void* body = nullptr;
  };
  /// Slot from which one thread takes its part of each call, alone on its cache lines.
  struct alignas(128) Seat {
    /// Twice the number of the call, plus one until the part is taken.
    std::atomic<std::uint32_t> offer{0};
    std::atomic<std::uint32_t> sleeping{0};
    /// Whether its thread is at its part of a call.
    std::atomic<bool> works{false};
    /// CPU time of its thread; set before the first part.
    clockid_t clock{};
  };

  void run(int parts, Call call);
  bool take(Seat& seat, std::uint32_t offer);
  void work(int part);
  std::uint32_t await_offer(Seat& seat);
  /// CPU clock of a thread that is at its part of the call.
  std::optional<clockid_t> first_at_work() const;
  void await_parts();
  void stop();

  ThreadWait wait_;
  std::vector<Seat> seats_;
  Call call_;
  std::uint32_t calls_ = 0;
  /// Parts of the call that are not done.
  alignas(128) std::atomic<std::uint32_t> unfinished_{0};
  std::atomic<std::uint32_t> caller_sleeps_{0};
  /// CPU clock of the thread that called last, before any call that of the one that made the team.
  std::atomic<clockid_t> caller_{own_cpu_clock()};
  Disturbance disturbance_{};
  std::vector<std::thread> threads_;
};

}  // namespace trireme::device::cpu
