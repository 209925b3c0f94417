// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/progress_line.hpp"

#include "trireme/base/format.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace trireme::apps {

ProgressLine::ProgressLine(std::string doing)
    : doing_(std::move(doing)), on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(std::uint64_t bytes_done, std::uint64_t bytes_total) {
  const auto now = Clock::now();
  if (!on_terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  const auto seconds = std::chrono::duration<double>(now - start_).count();
  const auto done = static_cast<double>(bytes_done);
  const auto share = bytes_total == 0 ? 0.0 : done / static_cast<double>(bytes_total);
  auto text = base::format("{}: {:3.0f} % of {}, {}/s", doing_, 100.0 * share,
                           base::bytes_text(bytes_total),
                           base::bytes_text(static_cast<std::uint64_t>(done / seconds)));
  if (share > 0.02) {
    text += base::format(", {} left", base::duration_text(seconds / share * (1.0 - share)));
  }
  const auto size = text.size();
  if (size < width_) text.append(width_ - size, ' ');
  width_ = size;
  std::fprintf(stderr, "\r%s", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::end() {
  if (width_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  std::fflush(stderr);
  width_ = 0;
}

}  // namespace trireme::apps
