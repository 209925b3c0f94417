// SPDX-License-Identifier: Apache-2.0
#include "user_copy.hpp"

#include "descriptors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace trireme::spank {
namespace {

constexpr unsigned patience_seconds = 5;
constexpr off_t largest_copy = off_t{16} << 20;

/// Takes the user's rights by raw system calls: the C library's versions would signal the threads
/// of slurmstepd, which this child does not have.
bool take_rights(const User& user) {
  return ::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, user.owner.group, user.owner.group, user.owner.group) == 0 &&
         ::syscall(SYS_setresuid, user.owner.user, user.owner.user, user.owner.user) == 0;
}

/// Child's body: after fork() in a process with threads only async-signal-safe calls are allowed.
[[noreturn]] void append_and_leave(const User& user, const char* path, const std::string& line) {
  // Inherited connections of slurmstepd must not stay open in this child.
  close_all_descriptors();
  sigset_t none;
  sigemptyset(&none);
  ::signal(SIGALRM, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(patience_seconds);
  if (!take_rights(user)) ::_exit(1);
  const int file = ::open(
      path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
  struct stat facts {};
  const bool usable = file >= 0 && ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
                      facts.st_size < largest_copy;
  // Single write in append mode: lines of several processes do not mix.
  if (usable) ::_exit(::write(file, line.data(), line.size()) > 0 ? 0 : 1);
  ::_exit(1);
}

}  // namespace

void append_as_user(const User& user, const std::string& path, const std::string& line) {
  const auto child = ::fork();
  if (child == 0) {
    // Double fork: the grandchild has no parent that must wait for it.
    if (::fork() == 0) append_and_leave(user, path.c_str(), line);
    ::_exit(0);
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace trireme::spank
