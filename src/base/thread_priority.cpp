// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/thread_priority.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trireme::base {

void BackgroundPriority::yield() {
  constexpr int lowest = 19;
  thread_ = static_cast<int>(::syscall(SYS_gettid));
  if (competes_) return;
  const int usual = ::getpriority(PRIO_PROCESS, 0);
  (void)::setpriority(PRIO_PROCESS, 0, lowest);
  // Somebody may have begun to wait meanwhile, and has seen the usual priority.
  if (competes_) (void)::setpriority(PRIO_PROCESS, 0, usual);
}

void BackgroundPriority::compete() {
  competes_ = true;
  const int thread = thread_;
  if (thread == 0) return;
  const int usual = ::getpriority(PRIO_PROCESS, 0);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), usual);
}

}  // namespace trireme::base
