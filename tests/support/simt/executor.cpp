// SPDX-License-Identifier: Apache-2.0
#include "support/simt/executor.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

namespace trireme::device::simt {
namespace {

Executor* running = nullptr;

/// "norm.cuh:41".
std::string text(const Place& place) {
  const std::string_view path = place.file_name();
  const auto slash = path.find_last_of('/');
  return base::format("{}:{}", slash == std::string_view::npos ? path : path.substr(slash + 1),
                      place.line());
}

std::vector<int> shuffled(int count, std::mt19937_64& random) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// Never used twice, by any executor: marks in memory outlive launches.
std::uint64_t fresh_number() {
  static std::uint64_t number = 0;
  return ++number;
}

}  // namespace

const char* name(Meeting meeting) {
  switch (meeting) {
    case Meeting::none:
      return "nothing";
    case Meeting::block_sync:
      return "sync";
    case Meeting::block_any:
      return "block_any";
    case Meeting::warp_sync:
      return "sync_warp";
    case Meeting::shuffle:
      return "shuffle";
    case Meeting::ballot:
      return "ballot";
  }
  return "?";
}

Executor::Executor(std::uint64_t seed) : random_(seed), seed_(seed) {}

Executor& Executor::here() {
  TRIREME_EXPECT(running != nullptr, "kernels run on an executor");
  return *running;
}

void Executor::use(AddressSpace& memory) {
  memory_ = &memory;
  running = this;
}

void Executor::launch(const std::string& kernel, std::int64_t blocks, int threads,
                      const std::function<void()>& body) {
  TRIREME_EXPECT(running == this, "a launch needs memory");
  TRIREME_EXPECT(
      threads > 0 && threads <= most_threads && threads % lanes == 0,
      base::format("kernel {}: {} threads (whole warps, at most 1,024)", kernel, threads));
  TRIREME_EXPECT(blocks > 0, base::format("kernel {}: a grid without blocks", kernel));
  while (pool_.size() < static_cast<std::size_t>(threads)) {
    pool_.push_back(std::make_unique<Thread>());
  }
  kernel_ = kernel;
  blocks_ = blocks;
  threads_ = threads;
  body_ = &body;
  actor_.launch = fresh_number();
  for (const auto block : shuffled(static_cast<int>(blocks), random_)) run_block(block);
}

void Executor::thread_main(void* executor) {
  auto& self = *static_cast<Executor*>(executor);
  auto& thread = *self.pool_[static_cast<std::size_t>(self.actor_.thread)];
  try {
    (*self.body_)();
  } catch (const Fault& fault) {
    self.fault_ = std::make_unique<Fault>(fault);
  } catch (const std::exception& error) {
    self.fault_ = std::make_unique<Fault>(error.what());
  }
  thread.ended = true;
  thread.fiber.suspend();
}

void Executor::run_block(std::int64_t block) {
  actor_.block = block;
  actor_.block_run = fresh_number();
  actor_.epoch = fresh_number();
  warps_.assign(static_cast<std::size_t>(threads_ / lanes), {});
  for (int index = 0; index < threads_; ++index) {
    auto& thread = *pool_[static_cast<std::size_t>(index)];
    thread.fiber.prepare(&Executor::thread_main, this);
    thread.waits_for = Meeting::none;
    thread.ended = false;
  }
  do {
    for (const auto warp : shuffled(threads_ / lanes, random_)) run_warp(warp);
  } while (release_block());
}

void Executor::run_warp(int warp) {
  do {
    for (const auto lane : shuffled(lanes, random_)) {
      const int index = warp * lanes + lane;
      const auto& thread = *pool_[static_cast<std::size_t>(index)];
      if (!thread.ended && thread.waits_for == Meeting::none) run_thread(index);
    }
  } while (release_warp(warp));
}

void Executor::run_thread(int index) {
  actor_.thread = index;
  actor_.warp = index / lanes;
  actor_.warp_epoch = warps_[static_cast<std::size_t>(actor_.warp)].epoch;
  pool_[static_cast<std::size_t>(index)]->fiber.resume();
  if (fault_ != nullptr) {
    const auto fault = std::move(fault_);
    throw Fault(*fault);
  }
}

bool Executor::same_meeting(const Thread& one, const Thread& other) {
  return one.ended == other.ended && one.waits_for == other.waits_for &&
         one.where.line() == other.where.line() &&
         std::strcmp(one.where.file_name(), other.where.file_name()) == 0;
}

bool Executor::release_warp(int warp) {
  const auto begin = pool_.begin() + warp * lanes;
  const auto end = begin + lanes;
  const auto waits = [](const std::unique_ptr<Thread>& thread) {
    return !thread->ended && thread->waits_for != Meeting::block_sync &&
           thread->waits_for != Meeting::block_any;
  };
  const auto first = std::find_if(begin, end, waits);
  if (first == end) return false;
  auto& state = warps_[static_cast<std::size_t>(warp)];
  for (auto thread = begin; thread != end; ++thread) {
    if (!same_meeting(**first, **thread)) fail_meeting(**first, **thread, "warp");
    state.words[static_cast<std::size_t>(thread - begin)] = (*thread)->word;
  }
  if ((*first)->waits_for == Meeting::warp_sync) ++state.epoch;
  std::for_each(begin, end, [](auto& thread) { thread->waits_for = Meeting::none; });
  return true;
}

bool Executor::release_block() {
  const auto begin = pool_.begin();
  const auto end = begin + threads_;
  const auto waits = [](const std::unique_ptr<Thread>& thread) { return !thread->ended; };
  const auto first = std::find_if(begin, end, waits);
  if (first == end) return false;
  any_ = false;
  for (auto thread = begin; thread != end; ++thread) {
    if (!same_meeting(**first, **thread)) fail_meeting(**first, **thread, "block");
    any_ = any_ || (*thread)->word != 0;
  }
  std::for_each(begin, end, [](auto& thread) { thread->waits_for = Meeting::none; });
  actor_.epoch = fresh_number();
  return true;
}

const Executor::Words& Executor::meet_warp(Meeting meeting, std::uint64_t word,
                                           const Place& where) {
  auto& thread = *pool_[static_cast<std::size_t>(actor_.thread)];
  thread.waits_for = meeting;
  thread.where = where;
  thread.word = word;
  thread.fiber.suspend();
  return warps_[static_cast<std::size_t>(actor_.warp)].words;
}

bool Executor::meet_block(Meeting meeting, bool condition, const Place& where) {
  auto& thread = *pool_[static_cast<std::size_t>(actor_.thread)];
  thread.waits_for = meeting;
  thread.where = where;
  thread.word = condition ? 1 : 0;
  thread.fiber.suspend();
  return any_;
}

int Executor::index_of(const Thread& thread) const {
  const auto place = std::find_if(pool_.begin(), pool_.end(),
                                  [&](const auto& other) { return other.get() == &thread; });
  return static_cast<int>(place - pool_.begin());
}

void Executor::fail_meeting(const Thread& one, const Thread& other, const char* whole) const {
  const auto state = [](const Thread& thread) {
    return thread.ended
               ? std::string("has ended")
               : base::format("waits at {} ({})", text(thread.where), name(thread.waits_for));
  };
  throw Fault(base::format(
      "kernel {}, block {}: divergence: thread {} {} while thread {} {} (all threads of a {} must "
      "come to the same meeting); order of seed {}",
      kernel_, actor_.block, index_of(one), state(one), index_of(other), state(other), whole,
      seed_));
}

void Executor::fail(const Place& where, const std::string& what) const {
  throw Fault(base::format("kernel {}, block {}, thread {} {} (at {}); order of seed {}", kernel_,
                           actor_.block, actor_.thread, what, text(where), seed_));
}

void Executor::fail_race(const Place& where, Access access, const Conflict& earlier,
                         const std::string& what) const {
  const auto* verb = earlier.was_write ? "wrote" : "read";
  const auto who = earlier.block == actor_.block ? base::format("thread {}", earlier.thread)
                                                 : base::format("block {}", earlier.block);
  fail(where, base::format("{} what {} {} at {}, and nothing orders the two (race): {}",
                           access == Access::read ? "reads" : "writes", who, verb,
                           text(earlier.where), what));
}

}  // namespace trireme::device::simt
