// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/runtime/spinning.hpp"

#include <pthread.h>

namespace trireme::device::cpu {
namespace {

using namespace std::chrono_literals;

/// Between two looks of a thread that keeps its core.
constexpr auto longest_gap = 300us;
/// Time in which no thread spins for long once one has lost its core: whoever took it is likely
/// to be there still.
constexpr auto rest = 100ms;

std::optional<std::chrono::nanoseconds> cpu_time(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

clockid_t own_cpu_clock() {
  clockid_t clock{};
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return clock;
}

void Spinning::note_gap(Clock::time_point now, Clock::duration gap) {
  if (gap > longest_gap) disturbance_.store(now, std::memory_order_relaxed);
}

bool Spinning::was_disturbed(Clock::time_point now) const {
  return now - disturbance_.load(std::memory_order_relaxed) < rest;
}

bool Spinning::runs(std::optional<clockid_t> clock, Clock::time_point now) {
  const auto time = clock ? cpu_time(*clock) : std::nullopt;
  if (!time) return false;
  // Another thread than before: its interval begins now.
  const bool first = clock != clock_;
  const bool ran = first || 2 * (*time - cpu_time_) >= now - checked_;
  if (!ran && awaited_ == AwaitedThread::computes) {
    disturbance_.store(now, std::memory_order_relaxed);
  }
  checked_ = now;
  clock_ = clock;
  cpu_time_ = *time;
  return ran;
}

}  // namespace trireme::device::cpu
