// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace trireme::spank {
namespace {

/// Number of a name that is digits only; -1 for others.
int number_of(const char* name) {
  int number = 0;
  if (*name == '\0') return -1;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    number = 10 * number + (*name - '0');
  }
  return number;
}

/// One pass over the list; returns the number of closed descriptors.
int close_listed(int list) {
  // Layout of getdents64's entries: names behind two numbers, the length of the entry and a type.
  constexpr std::size_t length_at = 16;
  constexpr std::size_t name_at = 19;
  alignas(8) char entries[4096];
  int closed = 0;
  for (;;) {
    const auto bytes = ::syscall(SYS_getdents64, list, entries, sizeof entries);
    if (bytes <= 0) return closed;
    for (long at = 0; at < bytes;) {
      unsigned short length = 0;
      std::memcpy(&length, entries + at + length_at, sizeof length);
      const int descriptor = number_of(entries + at + name_at);
      if (descriptor >= 0 && descriptor != list && ::close(descriptor) == 0) ++closed;
      at += length;
    }
  }
}

}  // namespace

void close_all_descriptors(Closing how) {
  if (how == Closing::by_range && ::syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
  const int list = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) {
    // Without /proc: a limit that programs do not exceed in practice.
    constexpr int most = 65536;
    for (int descriptor = 0; descriptor < most; ++descriptor) ::close(descriptor);
    return;
  }
  // The list changes under the reader: until a pass finds none.
  while (close_listed(list) > 0) ::lseek(list, 0, SEEK_SET);
  ::close(list);
}

}  // namespace trireme::spank
