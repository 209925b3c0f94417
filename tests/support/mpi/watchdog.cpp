// SPDX-License-Identifier: Apache-2.0
#include "watchdog.hpp"

#include "trireme/base/log.hpp"

#include <cstdlib>

namespace trireme::testing {

using std::chrono::steady_clock;

Watchdog::Watchdog(std::chrono::duration<double> limit, std::function<std::string()> place)
    : limit_(limit),
      place_(std::move(place)),
      test_case_("start-up"),
      begin_(steady_clock::now()),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::enter(const std::string& test_case) {
  const std::lock_guard lock(mutex_);
  test_case_ = test_case;
}

std::chrono::duration<double> Watchdog::limit_from(const char* ctest_seconds) {
  constexpr double by_hand = 3600;
  // The rest is for the ranks that are late to say it too.
  constexpr double share = 0.85;
  const double seconds = ctest_seconds == nullptr ? 0 : std::atof(ctest_seconds);
  return std::chrono::duration<double>(seconds > 0 ? share * seconds : by_hand);
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  const auto until = begin_ + std::chrono::duration_cast<steady_clock::duration>(limit_);
  while (!over_ && steady_clock::now() < until) changed_.wait_until(lock, until);
  if (over_) return;
  const auto doing = place_();
  base::log::local::error("test", "hangs after {:.1f} s in '{}'; {}", limit_.count(), test_case_,
                          doing.empty() ? "in no wait for other ranks" : doing);
  // Launchers end all ranks when the first one goes: each still says where it is.
  constexpr std::chrono::seconds moment{1};
  std::this_thread::sleep_for(moment);
  std::_Exit(1);
}

}  // namespace trireme::testing
