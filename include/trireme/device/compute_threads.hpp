// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <chrono>
#include <memory>

namespace trireme::device {

/// Wait of a compute thread until there is work for it: it spins, then sleeps. Spinning
/// saves the wake-up between two kernels; what spins longer keeps the core from whoever else is to
/// run on it, and that may be the very thread that it waits for.
struct ThreadWait {
  std::chrono::microseconds spin{50};
  bool operator==(const ThreadWait&) const = default;
};
/// Never sleeps: for cores that nobody else will ever use.
constexpr ThreadWait always_spins{std::chrono::hours{24 * 365}};
/// Never spins.
constexpr ThreadWait never_spins{std::chrono::microseconds{0}};

/// make_cpu_kernels() with threads that wait as told.
std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling, ThreadWait wait);

}  // namespace trireme::device
