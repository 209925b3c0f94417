// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/standard_input.hpp"

#include "trireme/base/error.hpp"

#include <unistd.h>

#include <cerrno>

namespace trireme::apps {

std::string read_standard_input() {
  constexpr std::size_t step_bytes = std::size_t{1} << 20;
  std::string text;
  for (;;) {
    const auto filled = text.size();
    text.resize(filled + step_bytes);
    const auto count = ::read(STDIN_FILENO, text.data() + filled, step_bytes);
    text.resize(filled + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      base::throw_errno(base::ExitCode::usage, "cannot read standard input", errno);
    }
    if (count == 0) return text;
  }
}

}  // namespace trireme::apps
