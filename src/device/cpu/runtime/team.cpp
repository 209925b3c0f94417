// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/runtime/team.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

namespace trireme::device::cpu {
namespace {

/// Offer that ends a thread; no call makes it: its number would be 0.
constexpr std::uint32_t end_of_work = 1;

bool is_open(std::uint32_t offer) {
  return offer % 2 == 1;
}

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  // Early returns (a changed word, a signal) do not matter to a caller that checks again.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Wait without spinning if there are more threads than cores and no other wait was asked for:
/// spinning threads keep the others from their cores.
ThreadWait suited(const ThreadWait& wait, int threads) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = ::sched_getaffinity(0, sizeof cores, &cores) == 0;
  return known && CPU_COUNT(&cores) < threads && wait == ThreadWait{} ? never_spins : wait;
}

/// Scope in which new threads take no signals but those of their own faults: handlers run on the
/// threads that they were made for.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Team::Team(int threads, ThreadWait wait)
    : wait_(suited(wait, threads)), seats_(static_cast<std::size_t>(threads)) {
  TRIREME_EXPECT(threads > 0, "a team has at least the thread that calls");
  const SignalsBlocked blocked;
  try {
    for (int part = 1; part < threads; ++part) {
      threads_.emplace_back([this, part] { work(part); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw base::Error(
        base::ExitCode::topology,
        base::format("compute thread {} of {} does not start: {} (the limit of processes is "
                     "reached); lower numerics.threads or raise the limit (ulimit -u, pids.max)",
                     threads_.size() + 1, threads, error.code().message()));
  }
}

Team::~Team() {
  stop();
}

void Team::stop() {
  for (auto& seat : seats_) {
    seat.offer.store(end_of_work);
    wake(seat.offer);
  }
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Team::run(int parts, Call call) {
  TRIREME_EXPECT(parts <= size() && call_.run == nullptr, "a call for as many parts as threads");
  // Numbers repeat after days; 0 and the end of work are never used.
  calls_ = calls_ == 0x7fffffffU ? 1 : calls_ + 1;
  call_ = call;
  caller_.store(own_cpu_clock(), std::memory_order_relaxed);
  unfinished_.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
  const auto offer = 2 * calls_ + 1;
  const auto count = static_cast<std::size_t>(parts);
  for (std::size_t part = 1; part < count; ++part) {
    seats_[part].offer.store(offer, std::memory_order_release);
  }
  // The fence makes sure that a thread about to sleep sees the offer, or is seen to sleep here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t part = 1; part < count; ++part) {
    if (seats_[part].sleeping.load(std::memory_order_relaxed) != 0) wake(seats_[part].offer);
  }
  call.run(call.body, 0);
  std::uint32_t done = 1;
  for (auto part = count - 1; part > 0; --part) {
    if (!take(seats_[part], offer)) continue;
    call.run(call.body, static_cast<int>(part));
    ++done;
  }
  unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  await_parts();
  call_ = {};
}

bool Team::take(Seat& seat, std::uint32_t offer) {
  return seat.offer.load(std::memory_order_relaxed) == offer &&
         seat.offer.compare_exchange_strong(offer, offer - 1, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

std::optional<clockid_t> Team::first_at_work() const {
  for (const auto& seat : seats_) {
    if (seat.works.load(std::memory_order_acquire)) return seat.clock;
  }
  return std::nullopt;
}

void Team::await_parts() {
  Spinning spinning(wait_, AwaitedThread::computes, disturbance_);
  while (const auto left = unfinished_.load(std::memory_order_acquire)) {
    if (spinning.pass([this] { return first_at_work(); })) continue;
    caller_sleeps_.store(1);
    if (unfinished_.load() == left) sleep_while(unfinished_, left);
    caller_sleeps_.store(0, std::memory_order_relaxed);
  }
}

std::uint32_t Team::await_offer(Seat& seat) {
  Spinning spinning(wait_, AwaitedThread::calls, disturbance_);
  const auto caller = [this] { return caller_.load(std::memory_order_relaxed); };
  for (;;) {
    const auto seen = seat.offer.load(std::memory_order_acquire);
    if (is_open(seen)) return seen;
    if (spinning.pass(caller)) continue;
    seat.sleeping.store(1);
    if (seat.offer.load() == seen) sleep_while(seat.offer, seen);
    seat.sleeping.store(0, std::memory_order_relaxed);
  }
}

void Team::work(int part) {
  auto& seat = seats_[static_cast<std::size_t>(part)];
  seat.clock = own_cpu_clock();
  for (;;) {
    const auto offer = await_offer(seat);
    if (offer == end_of_work) return;
    if (!take(seat, offer)) continue;
    seat.works.store(true, std::memory_order_release);
    call_.run(call_.body, part);
    seat.works.store(false, std::memory_order_relaxed);
    // The last thread of a call wakes the caller, if it sleeps.
    if (unfinished_.fetch_sub(1) == 1 && caller_sleeps_.load() != 0) wake(unfinished_);
  }
}

}  // namespace trireme::device::cpu
