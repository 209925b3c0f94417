// SPDX-License-Identifier: Apache-2.0
#include "support/end_of_child.hpp"

#include <catch2/catch.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace trireme::testing {

End end_of(const std::function<void()>& deed) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGSEGV, SIG_DFL);
    deed();
    ::_exit(0);
  }
  ::close(ends[1]);
  End end;
  std::array<char, 256> piece{};
  for (ssize_t count = 1; count > 0;) {
    count = ::read(ends[0], piece.data(), piece.size());
    if (count > 0) end.words.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace trireme::testing
