// SPDX-License-Identifier: Apache-2.0
#include "log_line.hpp"

#include "trireme/base/utc.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include <algorithm>
#include <charconv>

namespace trireme::postmortem {
namespace {

/// Parses `count` digits at the begin of the text and removes them.
bool take_number(std::string_view& text, std::size_t count, int& number) {
  if (text.size() < count) return false;
  const auto parsed = std::from_chars(text.data(), text.data() + count, number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + count || number < 0) return false;
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

std::string_view take_word(std::string_view& text) {
  const auto end = text.find(' ');
  const auto word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

/// "2026-11-21T09:37:34.123Z ".
bool take_time(std::string_view& text, std::int64_t& time_ms) {
  constexpr std::size_t length = std::string_view("2026-11-21T09:37:34.123Z").size();
  if (text.size() <= length || text[length] != ' ') return false;
  const auto time = base::utc_milliseconds(text.substr(0, length));
  if (!time) return false;
  text.remove_prefix(length + 1);
  time_ms = *time;
  return true;
}

}  // namespace

base::Result<LogLine> parse_log_line(std::string_view line) {
  const auto refused = base::Failure{base::ExitCode::usage, "no line of a rank's log"};
  LogLine parsed;
  auto rest = line;
  if (!take_time(rest, parsed.time_ms)) return refused;
  parsed.level = take_word(rest);
  const auto levels = {"debug", "info", "warning", "error"};
  if (std::find(levels.begin(), levels.end(), parsed.level) == levels.end()) return refused;
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  if (!take(rest, "r")) return refused;
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash < 4 || slash > 9 ||
      !take_number(rest, slash, parsed.rank) || !take(rest, "/")) {
    return refused;
  }
  const auto size_text = take_word(rest);
  auto digits = size_text;
  if (digits.empty() || digits.size() > 9 ||
      !take_number(digits, digits.size(), parsed.world_size)) {
    return refused;
  }
  parsed.node = take_word(rest);
  const auto colon = rest.find(": ");
  if (colon == std::string_view::npos) return refused;
  parsed.room = rest.substr(0, colon);
  parsed.text = rest.substr(colon + 2, longest_text);
  return parsed;
}

}  // namespace trireme::postmortem
