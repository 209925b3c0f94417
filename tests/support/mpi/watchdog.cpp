#include "watchdog.hpp"

#include "trireme/base/log.hpp"

#include <cstdlib>

namespace trireme::testing {

Watchdog::Watchdog(std::chrono::seconds limit, std::function<std::string()> place)
    : limit_(limit),
      place_(std::move(place)),
      test_case_("start-up"),
      entered_(std::chrono::steady_clock::now()),
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
  entered_ = std::chrono::steady_clock::now();
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (std::chrono::steady_clock::now() >= entered_ + limit_) {
      base::log::local::error("test", "'{}' hangs for {} s; {}", test_case_, limit_.count(),
                              place_());
      std::_Exit(1);
    }
    changed_.wait_until(lock, entered_ + limit_);
  }
}

}  // namespace trireme::testing
