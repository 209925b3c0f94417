#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace trireme::testing {

/// Ends the process when a test case takes too long, and says where it hangs: a test that hangs
/// in silence helps nobody.
class Watchdog {
 public:
  /// `place` is asked, on another thread, what the process is doing.
  Watchdog(std::chrono::seconds limit, std::function<std::string()> place);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Starts the time anew.
  void enter(const std::string& test_case);

 private:
  void run();

  std::chrono::seconds limit_;
  std::function<std::string()> place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_case_;
  std::chrono::steady_clock::time_point entered_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace trireme::testing
