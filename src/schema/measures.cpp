// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/schema/text.hpp"
#include "trireme/schema/value.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace trireme::schema {
namespace {

using base::lower_case;
using base::Result;
using base::trimmed;
using base::usage_failure;

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array<Unit, 12> size_units{{{"", 1},
                                           {"B", 1},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"PB", 1e15},
                                           {"KiB", 0x1p10},
                                           {"MiB", 0x1p20},
                                           {"GiB", 0x1p30},
                                           {"TiB", 0x1p40},
                                           {"PiB", 0x1p50}}};

/// Largest first: a time names each at most once, in this order.
constexpr std::array<Unit, 6> time_units{
    {{"d", 86400}, {"h", 3600}, {"min", 60}, {"m", 60}, {"s", 1}, {"ms", 1e-3}}};

constexpr std::string_view size_fix = "give a size such as 4096, 25MB or 16GiB";
constexpr std::string_view time_fix = "give a time such as 90s, 2h or 1h30min";
constexpr double longest_seconds = 10 * 365.25 * 86400;

/// Digits with at most one point: no sign, no exponent, no words.
std::string_view leading_number(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789.");
  return text.substr(0, end);
}

std::optional<double> decimal(std::string_view digits) {
  double number = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stop, problem] =
      std::from_chars(digits.data(), end, number, std::chars_format::fixed);
  // Infinity and not-a-number have no digits.
  if (digits.empty() || digits != leading_number(digits) || problem != std::errc{} || stop != end)
    return std::nullopt;
  return number;
}

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const auto& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

const Unit* find_size_unit(std::string_view name) {
  for (const auto& unit : size_units) {
    if (lower_case(unit.name) == lower_case(name)) return &unit;
  }
  return nullptr;
}

Result<std::int64_t> unknown_size_unit(std::string_view digits, std::string_view unit) {
  const auto letter = lower_case(unit);
  if (letter.size() == 1 && std::string_view("kmgtp").find(letter) != std::string_view::npos) {
    const char upper = static_cast<char>(letter[0] - 'a' + 'A');
    return usage_failure(
        base::format("{0} may be a power of 1000 or of 1024: write {1}{2}B or "
                     "{1}{3}iB",
                     unit, digits, letter == "k" ? 'k' : upper, upper));
  }
  return usage_failure(std::string(size_fix));
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view raw) {
  const auto text = trimmed(raw);
  const auto digits = leading_number(text);
  const auto name = trimmed(text.substr(digits.size()));
  const auto number = decimal(digits);
  if (!number) return usage_failure(std::string(size_fix));
  const auto* unit = find_size_unit(name);
  if (unit == nullptr) return unknown_size_unit(digits, name);

  std::int64_t whole = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, whole);
  const auto size = static_cast<std::int64_t>(unit->size);
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  if (problem == std::errc{} && stop == end) {
    if (whole <= largest / size) return whole * size;
  } else if (const double bytes = *number * unit->size; bytes < 0x1p53) {
    if (std::floor(bytes) == bytes) return static_cast<std::int64_t>(bytes);
    return usage_failure("it is not a whole number of bytes; use a smaller unit");
  }
  return usage_failure("sizes end at 8191PiB");
}

Result<double> parse_seconds(std::string_view raw) {
  auto text = trimmed(raw);
  if (const auto bare = decimal(text)) {
    if (*bare > longest_seconds) return usage_failure("times end at 10 years");
    return *bare;
  }
  double seconds = 0;
  double last_size = std::numeric_limits<double>::infinity();
  do {
    const auto digits = leading_number(text);
    const auto number = decimal(digits);
    text = trimmed(text.substr(digits.size()));
    const auto name = text.substr(0, text.find_first_of("0123456789. \t"));
    const auto* unit = find_unit(time_units, name);
    if (!number || unit == nullptr || unit->size >= last_size) {
      return usage_failure(std::string(time_fix));
    }
    // Milliseconds divide, so that 1500ms is exactly 1.5s.
    seconds += unit->size < 1 ? *number / 1000 : *number * unit->size;
    last_size = unit->size;
    text = trimmed(text.substr(name.size()));
  } while (!text.empty());
  if (seconds > longest_seconds) return usage_failure("times end at 10 years");
  return seconds;
}

}  // namespace trireme::schema
