// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/call_deadline.hpp"

#include "trireme/base/format.hpp"

#include "comm/core/wait_clock.hpp"
#include "comm/watchdog/node_tasks.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace trireme::comm {
namespace {

/// Global state, because MPI is one for the process.
std::atomic<double> limit_for_all{0};
std::atomic<int> exit_code{static_cast<int>(base::ExitCode::peer)};
std::atomic<bool> under_way{false};

/// Head start of the rank that reports for its node: launchers end the others once one has ended.
constexpr std::chrono::seconds head_start{2};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

[[noreturn]] void end_at_deadline(const std::string& call, double limit_seconds) {
  const auto tasks = NodeTasks::look();
  if (!tasks.speaks_for_node()) std::this_thread::sleep_for(head_start);
  const int code = exit_code.load();
  const auto line = base::format(
      "trireme: failed with exit code {}: rank {} has waited {} in {} (comm.start_timeout); {}; "
      "first "
      "failing rank {} on {}; log: stderr\n",
      code, tasks.self(), base::duration_text(limit_seconds), call, tasks.text(), tasks.suspect(),
      host_name());
  std::fputs(line.c_str(), stderr);
  std::_Exit(code);
}

}  // namespace

CallDeadline::CallDeadline(std::string call)
    : call_(std::move(call)), limit_seconds_(limit_for_all.load()) {
  if (limit_seconds_ <= 0 || under_way.exchange(true)) return;
  thread_.emplace([this] { run(); });
}

CallDeadline::~CallDeadline() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_->join();
  under_way = false;
}

void CallDeadline::run() {
  // Interval short enough for WaitClock to notice that the process was stopped.
  constexpr std::chrono::milliseconds look{200};
  WaitClock clock;
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (clock.waited().count() >= limit_seconds_) end_at_deadline(call_, limit_seconds_);
    changed_.wait_for(lock, look);
  }
}

void CallDeadline::set_limit(double seconds) {
  limit_for_all = seconds;
}

void CallDeadline::set_exit_code(base::ExitCode code) {
  exit_code = static_cast<int>(code);
}

}  // namespace trireme::comm
