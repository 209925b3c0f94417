// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/store_choice.hpp"

#include "trireme/device/tensor.hpp"

#include "comm/shm/group.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace trireme::comm {
namespace {

/// Array of each size class for the measurement; it takes some tens or hundreds of microseconds, so
/// that the whole measurement takes two or three milliseconds.
constexpr std::size_t small_probe = std::size_t{128} << 10;
constexpr std::size_t large_probe = std::size_t{1} << 20;
/// Rounds of each kind of store, alternating; the first one, on cold memory, is not counted.
constexpr int rounds = 3;

}  // namespace

std::size_t beyond_caches(int ranks) {
  constexpr long least = long{4} << 20;
  static const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return static_cast<std::size_t>(std::max(least, cache / ranks));
}

StoreChoice faster_stores(const std::function<StoreSeconds(std::size_t bytes)>& seconds_of) {
  const auto faster = [&](std::size_t bytes) {
    const auto seconds = seconds_of(bytes);
    return seconds[static_cast<std::size_t>(Storing::streaming)] <
                   seconds[static_cast<std::size_t>(Storing::ordinary)]
               ? Storing::streaming
               : Storing::ordinary;
  };
  const auto small = faster(small_probe);
  return {small, faster(large_probe)};
}

StoreSeconds SharedGroup::seconds_of_stores(std::size_t bytes) {
  using Clock = std::chrono::steady_clock;
  std::vector<float> array(bytes / sizeof(float));
  const device::Tensor tensor(array.data(), device::DType::f32,
                              {static_cast<std::int64_t>(array.size())});
  constexpr float never = 1e9F;
  StoreSeconds seconds{never, never};
  for (int round = 0; round < rounds; ++round) {
    for (const auto way : {Storing::ordinary, Storing::streaming}) {
      stores_ = {way, way};
      barrier();
      const auto begin = Clock::now();
      all_reduce(tensor);
      const std::chrono::duration<float> took = Clock::now() - begin;
      auto& best = seconds[static_cast<std::size_t>(way)];
      if (round > 0) best = std::min(best, took.count());
    }
  }
  // All members decide alike: the slowest one's time counts.
  all_reduce(device::Tensor(seconds.data(), device::DType::f32, {2}), ReduceOp::max);
  return seconds;
}

void SharedGroup::choose_stores(Stores wish, CoreSharing sharing) {
  if (wish == Stores::measured && sharing == CoreSharing::own) {
    stores_ = faster_stores([this](std::size_t bytes) { return seconds_of_stores(bytes); });
  } else {
    // Times of ranks that share cores, and hence caches, mean nothing.
    const auto way = wish == Stores::streaming ? Storing::streaming : Storing::ordinary;
    stores_ = {way, way};
  }
  p2p_.use(stores_.large);
  // The measurement's operations are not counted in messages to people.
  collectives_started_ = 0;
}

}  // namespace trireme::comm
