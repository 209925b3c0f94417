// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parallel.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/store/object_store.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace trireme::checkpoint {

int thread_count(int asked) {
  return asked > 0 ? asked : threads_of_part(1);
}

std::uint64_t id_of_cores() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // All ranks of a node are taken to share its cores where these are more than a set has.
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string text(host.data());
  text.append(reinterpret_cast<const char*>(&cores), sizeof cores);
  const auto digest = base::sha256(text);
  std::uint64_t id = 0;
  std::memcpy(&id, digest.data(), sizeof id);
  return id;
}

int threads_of_part(int ranks) {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / ranks, 1, 4);
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

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& on_failure) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    for (auto index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      try {
        work(index);
      } catch (...) {
        const std::lock_guard lock(mutex);
        next = count;
        if (failure) continue;
        failure = std::current_exception();
        if (on_failure) on_failure();
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
