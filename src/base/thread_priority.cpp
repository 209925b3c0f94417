// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/thread_priority.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trireme::base {

void yield_cores_to_training() {
  constexpr int lowest = 19;
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, lowest);
}

}  // namespace trireme::base
