// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::data {

/// Runs a stream of items through several threads and consumes the results in the items' order.
///
/// Each thread loops: pull an item (one thread at a time), work on it (all at once), and hand in
/// the result; the thread that closes the gap consumes the results that are due (one thread at a
/// time). Threads that are too far ahead wait, so memory is bounded. The first exception ends all
/// and is rethrown.
template <typename Item, typename Result>
class OrderedPipeline {
 public:
  /// pull() -> std::optional<Item>; make_work() -> a callable of one thread, Item -> Result;
  /// consume(Result&&).
  template <typename Pull, typename MakeWork, typename Consume>
  void run(int threads, Pull&& pull, MakeWork&& make_work, Consume&& consume) {
    const auto loop = [&] {
      try {
        auto work = make_work();
        while (auto item = pull_next(pull)) {
          auto result = work(std::move(item->second));
          if (!hand_in(item->first, std::move(result), consume)) return;
        }
      } catch (...) {
        fail(std::current_exception());
      }
    };
    most_waiting_ = 4 * static_cast<std::uint64_t>(threads);
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(loop);
    loop();
    others.clear();  // joins
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <typename Pull>
  std::optional<std::pair<std::uint64_t, Item>> pull_next(Pull& pull) {
    const std::lock_guard lock(pull_mutex_);
    {
      const std::lock_guard state(mutex_);
      if (failure_) return std::nullopt;
    }
    auto item = pull();
    if (!item) return std::nullopt;
    return std::pair(pulled_++, std::move(*item));
  }

  template <typename Consume>
  bool hand_in(std::uint64_t number, Result result, Consume& consume) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return failure_ || number < due_ + most_waiting_; });
    if (failure_) return false;
    waiting_.emplace(number, std::move(result));
    if (consuming_) return true;
    consuming_ = true;
    while (!failure_ && !waiting_.empty() && waiting_.begin()->first == due_) {
      auto next = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      lock.unlock();
      consume(std::move(next));
      lock.lock();
      ++due_;
      moved_.notify_all();
    }
    consuming_ = false;
    return true;
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    moved_.notify_all();
  }

  std::mutex pull_mutex_;
  std::uint64_t pulled_ = 0;  // under pull_mutex_

  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::uint64_t, Result> waiting_;
  std::uint64_t due_ = 0;
  std::uint64_t most_waiting_ = 0;
  bool consuming_ = false;
  std::exception_ptr failure_;
};

}  // namespace trireme::data
