// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/output.hpp"

#include "trireme/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace trireme::apps {

void Output::write(std::string_view text) {
  constexpr std::size_t buffer_bytes = std::size_t{64} << 10;
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes) flush();
}

void Output::flush() {
  // Taken out first: after a failure the same text is not written again by the destructor.
  const std::string text = std::exchange(buffer_, {});
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto count = ::write(descriptor_, rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) throw ReaderGone{};
    base::throw_errno(base::ExitCode::checkpoint, "cannot write to standard output", errno);
  }
}

void guard_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    // open() returns the lowest free descriptor, which is this one. A failure cannot be reported if
    // even /dev/null is missing.
    if (::open("/dev/null", mode) != descriptor) return;
  }
}

}  // namespace trireme::apps
