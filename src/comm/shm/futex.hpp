// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trireme::comm {

/// Sleeps while `word`, which lies in memory shared by processes, is `value`, at most this long.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::chrono::microseconds at_most);
/// Wakes all sleepers on `word`.
void futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace trireme::comm
