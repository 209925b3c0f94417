// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/terminal.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/text.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace trireme::apps {
namespace {

/// Columns of a terminal that does not tell its own.
constexpr std::size_t usual_columns = 80;

bool is_dumb(const base::Environment& environment) {
  return environment.get("TERM") == "dumb";
}

std::size_t columns_or_usual(int descriptor) {
  const auto size = terminal_size(descriptor);
  return size ? size->columns : usual_columns;
}

}  // namespace

std::optional<TerminalSize> terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

bool wants_colour(const base::Environment& environment, int descriptor) {
  const auto set = [&environment](const char* name) {
    const auto text = environment.get(name).value_or("");
    return !text.empty() && text != "0";
  };
  if (!environment.get("NO_COLOR").value_or("").empty()) return false;
  if (set("FORCE_COLOR") || set("CLICOLOR_FORCE")) return true;
  return ::isatty(descriptor) == 1 && !is_dumb(environment);
}

base::Glyphs glyphs_of(const base::Environment& environment) {
  if (environment.get("TERM") == "linux") return base::Glyphs::ascii;
  // Order: POSIX. Where nothing is set, as in most containers, terminals are of UTF-8 all the same.
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto locale = base::lower_case(environment.get(name).value_or(""));
    if (locale.empty()) continue;
    const bool is_utf8 =
        locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    return is_utf8 ? base::Glyphs::unicode : base::Glyphs::ascii;
  }
  return base::Glyphs::unicode;
}

base::log::Terminal log_terminal(const base::Environment& environment) {
  base::log::Terminal terminal{.glyphs = glyphs_of(environment)};
  if (is_dumb(environment)) return terminal;
  if (::isatty(STDERR_FILENO) == 1) {
    terminal.columns = [] { return columns_or_usual(STDERR_FILENO); };
    return terminal;
  }
  const auto path = environment.get(terminal_variable).value_or("");
  if (path.empty()) return terminal;
  // Opened for its size alone: what is written goes through the launcher's pipe, in order.
  auto file = base::open_file(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (!file.ok() || ::isatty(file->get()) != 1) return terminal;
  terminal.is_shared = true;
  terminal.columns = [shared = std::make_shared<base::File>(std::move(file).value())] {
    return columns_or_usual(shared->get());
  };
  return terminal;
}

std::string terminal_path(const base::Environment& environment) {
  std::array<char, 256> path{};
  if (is_dumb(environment) || ::ttyname_r(STDERR_FILENO, path.data(), path.size()) != 0) return {};
  return path.data();
}

}  // namespace trireme::apps
