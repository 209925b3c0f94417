// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

namespace trireme::device {

/// Times a part of a function; without a stopwatch it does nothing.
class Timed {
 public:
  explicit Timed(Stopwatch* watch) : watch_(watch) { start(); }
  void start() {
    if (watch_ != nullptr) watch_->start();
  }
  /// Ends the measurement; not called after a failure, which is not timed.
  void end() {
    if (watch_ != nullptr) watch_->stop();
  }

 private:
  Stopwatch* watch_;
};

}  // namespace trireme::device
