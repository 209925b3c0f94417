// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <chrono>
#include <memory>

namespace trireme::device {

/// Wait of a compute thread until there is work for it: it spins, then sleeps. Spinning saves the
/// wake-up between two kernels, and on a virtual machine the core itself, which the host takes from
/// who sleeps; but it keeps the core from whoever else is to run on it, and that may be the very
/// thread that it waits for.
struct ThreadWait {
  std::chrono::microseconds spin{50};
  /// Longest spin while the awaited thread runs and no thread of the team has lost its core lately:
  /// some tiles of a product.
  std::chrono::microseconds spin_beside_running{10'000};
  bool operator==(const ThreadWait&) const = default;
};
/// Spins for this time, whatever the other threads do.
constexpr ThreadWait spins_for(std::chrono::microseconds time) {
  return {time, time};
}
/// Never sleeps: for cores that nobody else will ever use.
constexpr ThreadWait always_spins = spins_for(std::chrono::hours{24 * 365});
/// Never spins.
constexpr ThreadWait never_spins = spins_for(std::chrono::microseconds{0});

/// make_cpu_kernels() with threads that wait as told.
std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling, ThreadWait wait);

}  // namespace trireme::device
