// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace trireme::base {

/// Priority of a thread that works beside training on its cores. Failures cost speed alone.
class BackgroundPriority {
 public:
  /// Gives the calling thread, and threads that it starts, the lowest priority. Training waits for
  /// its thread that has lost its core; a thread of the lowest priority takes 1.5 % of a busy core
  /// (the weights of Linux' nice 0 and 19 are 1024 and 15), and all of an idle one.
  void yield();
  /// Gives that thread the usual priority again, because somebody waits for it: from any thread,
  /// before or while it works. Linux lets only privileged processes do it, and those with
  /// RLIMIT_NICE.
  void compete();

 private:
  std::atomic<int> thread_{0};
  std::atomic<bool> competes_{false};
};

}  // namespace trireme::base
