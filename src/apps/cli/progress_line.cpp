// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/progress_line.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/log_terminal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace trireme::apps {
namespace {

namespace log = base::log;

constexpr std::chrono::milliseconds between_drawings{100};
constexpr std::chrono::seconds between_lines{10};
/// A guess at the time left is wild before.
constexpr double least_share = 0.02;

/// A bar in what the text leaves of the terminal's width, and the text, cut to it.
std::string drawn(double share, const std::string& text) {
  constexpr std::size_t most_columns = 30;
  constexpr std::size_t least_columns = 8;
  // The last column stays free: some terminals go on in the next line behind it.
  const auto columns = log::terminal_columns() - 1;
  const auto taken = base::width_of(text) + 2;
  if (columns < taken + least_columns) return std::string(base::first_columns(text, columns));
  const auto bar =
      base::bar(share, std::min(columns - taken, most_columns), log::terminal_glyphs());
  return log::settings().colour ? base::format("\033[2m{}\033[0m  {}", bar, text)
                                : base::format("{}  {}", bar, text);
}

}  // namespace

ProgressLine::ProgressLine(std::string room, std::string doing)
    : room_(std::move(room)), doing_(std::move(doing)) {}

void ProgressLine::show(std::uint64_t bytes_done, std::uint64_t bytes_total) {
  const bool has_terminal = log::terminal_columns() > 0;
  const auto now = Clock::now();
  if (log::settings().threshold > log::Level::info) return;
  if (now - said_ < (has_terminal ? Clock::duration(between_drawings) : between_lines)) return;
  said_ = now;
  const auto seconds = std::chrono::duration<double>(now - start_).count();
  const auto done = static_cast<double>(bytes_done);
  const auto share = bytes_total == 0 ? 0.0 : done / static_cast<double>(bytes_total);
  auto text = base::format("{}  {:.0f} % of {}", doing_, std::floor(100 * share),
                           base::bytes_text(bytes_total));
  if (bytes_done > 0) {
    text += base::format("  {}/s", base::bytes_text(static_cast<std::uint64_t>(done / seconds)));
  }
  if (share > least_share) {
    text += base::format("  left {}", base::duration_text(seconds / share * (1 - share)));
  }
  if (has_terminal) {
    log::set_status_line(drawn(share, text));
  } else {
    log::info(room_, "{}", text);
  }
}

void ProgressLine::end() {
  log::set_status_line("");
}

}  // namespace trireme::apps
