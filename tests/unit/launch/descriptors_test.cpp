// SPDX-License-Identifier: Apache-2.0
#include "spank-plugin/descriptors.hpp"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace trireme;

namespace {

/// How many descriptors below 2000 a child process has left after closing all; -1 when it failed.
int left_after(spank::Closing how) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int most = 2000;
    const int first = ::open("/dev/null", O_RDONLY);
    // More than one reading of the list holds, with gaps.
    for (int descriptor = first + 1; descriptor < 900; descriptor += 2) ::dup2(first, descriptor);
    spank::close_all_descriptors(how);
    int left = 0;
    for (int descriptor = 0; descriptor < most; ++descriptor) {
      if (::fcntl(descriptor, F_GETFD) >= 0) ++left;
    }
    ::_exit(left > 100 ? 100 : left);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a child of slurmstepd keeps no descriptor, with close_range and without") {
  CHECK(left_after(spank::Closing::by_range) == 0);
  CHECK(left_after(spank::Closing::listed) == 0);
}
