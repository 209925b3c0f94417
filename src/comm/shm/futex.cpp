// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace trireme::comm {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::chrono::microseconds at_most) {
  const timespec limit{at_most.count() / 1'000'000, at_most.count() % 1'000'000 * 1000};
  // Early returns (a changed word, a signal, the limit) need no distinction: the caller polls.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void futex_wake(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace trireme::comm
