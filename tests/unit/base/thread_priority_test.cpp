// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/thread_priority.hpp"

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include <latch>
#include <thread>

using trireme::base::BackgroundPriority;

namespace {

int own_priority() {
  return ::getpriority(PRIO_PROCESS, 0);
}

}  // namespace

TEST_CASE("a thread beside training has the lowest priority until somebody waits for it") {
  const int usual = own_priority();
  BackgroundPriority priority;
  std::latch yielded(1);
  std::latch awaited(1);
  int before = -1;
  int after = -1;
  bool may_raise = false;
  std::thread thread([&] {
    priority.yield();
    before = own_priority();
    yielded.count_down();
    awaited.wait();
    after = own_priority();
    may_raise = ::setpriority(PRIO_PROCESS, 0, usual) == 0;
  });
  yielded.wait();
  priority.compete();
  awaited.count_down();
  thread.join();
  CHECK(before == 19);
  CHECK(own_priority() == usual);
  CHECK(after == (may_raise ? usual : 19));
}

TEST_CASE("a thread for which somebody waits already keeps its priority") {
  const int usual = own_priority();
  BackgroundPriority priority;
  priority.compete();
  int found = -1;
  std::thread([&] {
    priority.yield();
    found = own_priority();
  }).join();
  CHECK(found == usual);
}
