// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

/// Private to the room.
namespace trireme::plan {

/// Calls work(index, thread) for each index below `count`, on this thread, number 0, and others, as
/// far as they start. The first exception is thrown on when all have ended.
template <typename Work>
void in_parallel(std::size_t count, int threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](int thread) {
    try {
      for (auto index = next++; index < count; index = next++) work(index, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads && static_cast<std::size_t>(thread) < count; ++thread) {
      try {
        others.emplace_back(run, thread);
      } catch (const std::system_error&) {
        break;  // The limit of processes is reached: those that run do all of it.
      }
    }
    run(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trireme::plan
