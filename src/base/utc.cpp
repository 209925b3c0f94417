// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utc.hpp"

#include "trireme/base/format.hpp"

#include <array>
#include <charconv>

namespace trireme::base {

std::string utc_text(const timespec& moment) {
  tm parts{};
  ::gmtime_r(&moment.tv_sec, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return format("{}.{:03}Z", std::string_view(text.data(), length), moment.tv_nsec / 1'000'000);
}

std::string utc_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return utc_text(now);
}

std::optional<std::int64_t> utc_milliseconds(std::string_view text) {
  constexpr std::string_view pattern = "0000-00-00T00:00:00";
  if (text.size() <= pattern.size()) return std::nullopt;
  const auto rest = text.substr(pattern.size());
  text = text.substr(0, pattern.size());
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '0' ? !is_digit(text[at]) : text[at] != pattern[at]) return std::nullopt;
  }
  const auto number = [](std::string_view digits) {
    int value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  int milliseconds = 0;
  if (rest.size() == 5 && rest.front() == '.' && is_digit(rest[1]) && is_digit(rest[2]) &&
      is_digit(rest[3]) && rest.back() == 'Z') {
    milliseconds = number(rest.substr(1, 3));
  } else if (rest != "Z") {
    return std::nullopt;
  }
  tm parts{};
  parts.tm_year = number(text.substr(0, 4)) - 1900;
  parts.tm_mon = number(text.substr(5, 2)) - 1;
  parts.tm_mday = number(text.substr(8, 2));
  parts.tm_hour = number(text.substr(11, 2));
  parts.tm_min = number(text.substr(14, 2));
  parts.tm_sec = number(text.substr(17, 2));
  return std::int64_t{::timegm(&parts)} * 1000 + milliseconds;
}

}  // namespace trireme::base
