// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/live.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/thread_priority.hpp"

#include "sinks/server.hpp"

#include <algorithm>
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
  /// It has asked to be left alone until then.
  Deadline::Clock::time_point not_before = {};
};

}  // namespace

struct Live::Shared {
  Shared(std::filesystem::path run_path, Options chosen)
      : run(std::move(run_path)), options(std::move(chosen)) {}

  std::filesystem::path run;
  Options options;
  /// Deadline of what is sent while the run goes on: its end.
  Deadline run_ends;
  std::vector<Follower> followers;
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;
  base::BackgroundPriority priority;
  std::thread thread;

  void work();
  void send_settled();
  void send_rest(const Deadline& deadline);
  void send(Follower& follower, Send what, std::chrono::milliseconds patience,
            const Deadline& deadline);
  bool is_ending();
  void stop();
};

bool Live::Shared::is_ending() {
  const std::lock_guard lock(mutex);
  return ends;
}

void Live::Shared::send(Follower& follower, Send what, std::chrono::milliseconds patience,
                        const Deadline& deadline) {
  try {
    if (follower.not_before > Deadline::Clock::now()) {
      if (what == Send::settled) return;
      // A deadline before that leaves it no time, as the first request says.
      std::this_thread::sleep_until(std::min(follower.not_before, deadline.get()));
    }
    // Opened anew for another patience: what was sent is in its note.
    if (what == Send::all) follower.sync.reset();
    if (!follower.sync) {
      follower.sync.emplace(base::value_or_throw(Sync::open(run, follower.target,
                                                            {.environment = options.environment,
                                                             .patience = patience,
                                                             .deadline = &deadline,
                                                             .trace_ranks = options.trace_ranks})));
    }
    follower.sync->send(what);
    if (follower.has_failed) {
      base::log::local::info("track", "{} takes the run again", follower.target.text());
    }
    follower.has_failed = false;
    if (what == Send::all) follower.sync.reset();
  } catch (const std::exception& error) {
    follower.sync.reset();
    if (const auto* busy = dynamic_cast<const Busy*>(&error)) follower.not_before = busy->until;
    // At the end of the run the rest is sent anew, and says what became of it.
    const bool is_unsaid = what == Send::settled && is_ending();
    if (is_unsaid) return;
    const bool was_told = std::exchange(follower.has_failed, true) && what == Send::settled;
    if (was_told) return;
    base::log::local::warning(
        "track", "{} (training goes on); trireme track sync {} --to {} sends {}", error.what(),
        base::shell_word(run.string()), base::shell_word(follower.target.text()),
        what == Send::all ? "the rest" : "it later, if it does not recover");
  }
}

void Live::Shared::send_settled() {
  for (auto& follower : followers) {
    if (is_ending()) return;
    send(follower, Send::settled, live_patience, run_ends);
  }
}

/// At the same time: a tracker that is silent takes no other's time.
void Live::Shared::send_rest(const Deadline& deadline) {
  std::vector<std::jthread> threads;
  for (auto& follower : followers) {
    threads.emplace_back([this, &follower, &deadline] {
      send(follower, Send::all, options.last_patience, deadline);
    });
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
  run_ends.set(Deadline::Clock::now());
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
  // One for all trackers, and for the request that is still under way.
  const Deadline deadline(Deadline::Clock::now() + shared_->options.last_patience);
  shared_->stop();
  shared_->send_rest(deadline);
}

}  // namespace trireme::track
