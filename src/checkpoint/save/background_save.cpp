// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/background_save.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/thread_priority.hpp"
#include "trireme/comm/agree.hpp"

#include "checkpoint/save/save_run.hpp"

#include <atomic>
#include <future>
#include <utility>

namespace trireme::checkpoint {
struct BackgroundSave::State {
  State(SaveRequest request, comm::ProcessGroup& world, SaveOptions options)
      : step(request.step), run(std::move(request), world, cancelled_by(cancelled, options)) {}
  ~State() {
    cancelled = true;
    writing.compete();
    committing.compete();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static SaveOptions cancelled_by(const std::atomic<bool>& flag, SaveOptions options) {
    options.cancelled = &flag;
    return options;
  }

  std::atomic<bool> cancelled{false};
  std::int64_t step;
  SaveRun run;
  enum class Part { writing, committing } part = Part::writing;
  std::promise<void> copied;
  std::future<void> is_copied = copied.get_future();
  /// Of the thread, in each part.
  base::BackgroundPriority writing;
  base::BackgroundPriority committing;
  /// Work of the thread; ends before what it uses.
  std::future<base::Status> work;
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
    state.writing.yield();
    return comm::status_of([&] { state.run.write_file(); });
  });
}

BackgroundSave::~BackgroundSave() = default;

std::int64_t BackgroundSave::step() const {
  return state_->step;
}

void BackgroundSave::await_copy() {
  state_->is_copied.wait();
}

bool BackgroundSave::is_busy() const {
  return state_->work.valid() &&
         state_->work.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

std::optional<SaveReport> BackgroundSave::advance(comm::ProcessGroup& world) {
  auto& state = *state_;
  TRIREME_EXPECT(state.work.valid(), "a save that has ended goes no further");
  (state.part == State::Part::writing ? state.writing : state.committing).compete();
  const auto status = state.work.get();
  switch (state.part) {
    case State::Part::writing:
      state.run.gather(status, world);
      state.part = State::Part::committing;
      state.work = std::async(std::launch::async, [&state] {
        state.committing.yield();
        return comm::status_of([&] { state.run.commit(); });
      });
      return std::nullopt;
    case State::Part::committing:
      return state.run.finish(status, world);
  }
  return std::nullopt;
}

}  // namespace trireme::checkpoint
