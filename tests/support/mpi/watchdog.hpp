// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace trireme::testing {

/// Ends the process when it takes too long, and says where it hangs: a test that hangs in silence
/// helps nobody.
class Watchdog {
 public:
  /// `place` is asked, on another thread, what the process is doing.
  Watchdog(std::chrono::duration<double> limit, std::function<std::string()> place);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The case that is named from now on.
  void enter(const std::string& test_case);

  /// Shorter than what ctest allows, whose end says nothing: of TRIREME_TEST_TIMEOUT in seconds
  /// (ctest's limit), or long without it.
  static std::chrono::duration<double> limit_from(const char* ctest_seconds);

 private:
  void run();

  std::chrono::duration<double> limit_;
  std::function<std::string()> place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_case_;
  std::chrono::steady_clock::time_point begin_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace trireme::testing
