// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parallel.hpp"

#include "trireme/store/object_store.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace trireme::checkpoint {

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
}

int reading_threads(const std::filesystem::path& path, int asked) {
  constexpr int of_object = 8;
  const int count = 2 * thread_count(asked);
  return store::is_url(path) ? std::max(count, of_object) : count;
}

int writing_threads(const std::filesystem::path& path, int asked) {
  constexpr int of_object = 4;
  const int count = thread_count(asked);
  // Writes of equal length end together: with twice as many as storage takes at a time, the
  // checksums of the next are there by then.
  return store::is_url(path) ? std::max(count, of_object) : 4 * count;
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    for (auto index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      try {
        work(index);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  const auto useful = std::min(count, static_cast<std::size_t>(thread_count(threads)));
  {
    std::vector<std::jthread> others;
    for (std::size_t index = 1; index < useful; ++index) others.emplace_back(loop);
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trireme::checkpoint
