// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/live.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/thread_priority.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace trireme::track {
namespace {

/// While the run goes on, a server that is gone or silent holds up the others, and the run's end,
/// for so long at most; one that is slow has so long for a batch.
constexpr std::chrono::seconds live_patience{5};

/// A tracker, opened when there is a record to send.
struct Follower {
  Target target;
  std::optional<Sync> sync = std::nullopt;
  bool has_failed = false;
};

}  // namespace

struct Live::Shared {
  Shared(std::filesystem::path run_path, Options chosen)
      : run(std::move(run_path)), options(std::move(chosen)) {}

  std::filesystem::path run;
  Options options;
  std::vector<Follower> followers;
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;
  base::BackgroundPriority priority;
  std::thread thread;

  void work();
  void send_settled();
  void send_rest();
  void send(Follower& follower, Send what, std::chrono::milliseconds patience) const;
  void stop();
};

void Live::Shared::send(Follower& follower, Send what, std::chrono::milliseconds patience) const {
  try {
    // Opened anew for another patience: what was sent is in its note.
    if (what == Send::all) follower.sync.reset();
    if (!follower.sync) {
      follower.sync.emplace(base::value_or_throw(Sync::open(run, follower.target,
                                                            {.environment = options.environment,
                                                             .patience = patience,
                                                             .trace_ranks = options.trace_ranks})));
    }
    follower.sync->send(what);
    if (follower.has_failed) {
      base::log::local::info("track", "{} takes the run again", follower.target.text());
    }
    follower.has_failed = false;
  } catch (const std::exception& error) {
    follower.sync.reset();
    const bool was_told = std::exchange(follower.has_failed, true) && what == Send::settled;
    if (was_told) return;
    base::log::local::warning("track",
                              "{} (training goes on); trireme track sync {} --to {} sends {}",
                              error.what(), run.string(), follower.target.text(),
                              what == Send::all ? "the rest" : "it later, if it does not recover");
  }
}

void Live::Shared::send_settled() {
  for (auto& follower : followers) {
    {
      const std::lock_guard lock(mutex);
      if (ends) return;
    }
    send(follower, Send::settled, live_patience);
  }
}

/// At the same time: a tracker that is silent takes no other's time.
void Live::Shared::send_rest() {
  std::vector<std::jthread> threads;
  for (auto& follower : followers) {
    threads.emplace_back([this, &follower] { send(follower, Send::all, options.last_patience); });
  }
}

void Live::Shared::work() {
  priority.yield();
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, options.interval, [this] { return ends; })) {
    lock.unlock();
    send_settled();
    lock.lock();
  }
}

void Live::Shared::stop() {
  {
    const std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  priority.compete();
  if (thread.joinable()) thread.join();
}

Live::Live(std::filesystem::path run, std::vector<Target> targets, Options options)
    : shared_(std::make_unique<Shared>(std::move(run), std::move(options))) {
  for (auto& target : targets) shared_->followers.push_back({std::move(target)});
  shared_->thread = std::thread([shared = shared_.get()] { shared->work(); });
}

Live::~Live() {
  shared_->stop();
}

void Live::finish() {
  shared_->stop();
  shared_->send_rest();
}

}  // namespace trireme::track
