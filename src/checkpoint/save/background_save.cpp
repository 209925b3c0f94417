// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/background_save.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/thread_priority.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/await_work.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/save/counting_files.hpp"
#include "checkpoint/save/save_run.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <utility>

namespace trireme::checkpoint {
struct BackgroundSave::State {
  State(SaveRequest request, comm::ProcessGroup& world, SaveOptions options)
      : step(request.step),
        files(options.files),
        longest_standstill(store::is_url(request.checkpoints) ? std::chrono::milliseconds::max()
                                                              : options.longest_standstill),
        run(std::move(request), world,
            {options.threads, files, guarded(std::move(options.before_commit)), &cancelled}) {}
  ~State() { cancel(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// The question before a commit, which a thread that was left behind must not ask: it belongs to
  /// whoever has gone on.
  std::function<void()> guarded(std::function<void()> before_commit) {
    return [this, ask = std::move(before_commit)] {
      if (cancelled) throw base::Error(base::ExitCode::checkpoint, "the save was given up");
      if (ask) ask();
    };
  }
  void cancel() {
    cancelled = true;
    for (auto& each : priorities) each.compete();
  }

  std::atomic<bool> cancelled{false};
  std::int64_t step;
  CountingFiles files;
  std::chrono::milliseconds longest_standstill;
  SaveRun run;
  enum class Part { writing, copying, committing } part = Part::writing;
  std::promise<void> copied;
  std::future<void> is_copied = copied.get_future();
  /// Priority of the thread in each part.
  std::array<base::BackgroundPriority, 3> priorities;
  base::BackgroundPriority& priority() { return priorities[static_cast<std::size_t>(part)]; }
  /// Work of the thread; ends before what it uses.
  std::future<base::Status> work;
  /// True where the wait for the threads of all ranks has failed.
  bool is_left = false;
  /// State that was left to its thread before this one: nobody is to take either for lost.
  State* left_before = nullptr;

  bool has_ended(std::chrono::milliseconds limit) const {
    return work.wait_for(limit) == std::future_status::ready;
  }
  /// Collective over the group. Waits for the threads of all ranks.
  void await(comm::ProcessGroup& world) {
    is_left = true;
    comm::await_work(world, {.ended = [this](auto limit) { return has_ended(limit); },
                             .progress = [this] { return files.count(); },
                             .text = base::format("writing step {}", step),
                             .limit = longest_standstill});
    is_left = false;
  }

  /// Begins a part with the thread's work in it.
  void go_on(Part next, std::function<void()> act) {
    part = next;
    work = std::async(std::launch::async, [this, act = std::move(act)] {
      priority().yield();
      return comm::status_of(act);
    });
  }
};

BackgroundSave::BackgroundSave(SaveRequest request, std::function<void()> copy,
                               comm::ProcessGroup& world, const SaveOptions& options)
    : state_(std::make_unique<State>(std::move(request), world, options)) {
  auto& state = *state_;
  TRIREME_EXPECT(state.run.is_of_host(), "a thread saves from host memory");
  state.work = std::async(std::launch::async, [&state, act = std::move(copy)] {
    auto copied = comm::status_of([&] {
      if (act) act();
    });
    state.copied.set_value();
    if (!copied) return copied;
    state.priorities[0].yield();
    return comm::status_of([&] { state.run.write_file(); });
  });
}

BackgroundSave::~BackgroundSave() {
  if (!state_->is_left) return;
  state_->cancel();
  // This rank is about to end, which a call that does not return must not hold up: the thread keeps
  // what it uses until the process has ended.
  if (state_->has_ended(std::chrono::seconds(1))) return;
  static std::mutex mutex;
  static State* left_behind = nullptr;
  const std::lock_guard lock(mutex);
  state_->left_before = left_behind;
  left_behind = state_.release();
}

std::int64_t BackgroundSave::step() const {
  return state_->step;
}

void BackgroundSave::await_copy(comm::ProcessGroup& world) {
  state_->is_copied.wait();
  state_->run.copies().start(world);
}

bool BackgroundSave::is_busy() const {
  auto& copies = state_->run.copies();
  if (copies.is_started() && !copies.poll()) return true;
  return state_->work.valid() && !state_->has_ended(std::chrono::seconds(0));
}

std::optional<SaveReport> BackgroundSave::poll(comm::ProcessGroup& world) {
  auto& state = *state_;
  TRIREME_EXPECT(state.work.valid(), "a save that has ended goes no further");
  if (state.part == State::Part::writing) await_copy(world);
  state.run.copies().wait();
  state.priority().compete();
  state.await(world);
  const auto status = state.work.get();
  switch (state.part) {
    case State::Part::writing:
      state.run.gather(status, world);
      if (state.run.copies().any()) {
        state.go_on(State::Part::copying, [&state] { state.run.write_copies(); });
      } else {
        state.go_on(State::Part::committing, [&state] { state.run.commit(); });
      }
      return std::nullopt;
    case State::Part::copying:
      state.run.agree(status, world);
      state.go_on(State::Part::committing, [&state] { state.run.commit(); });
      return std::nullopt;
    case State::Part::committing:
      return state.run.finish(status, world);
  }
  return std::nullopt;
}

}  // namespace trireme::checkpoint
