// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/schema/quoted.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/schema/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace trireme::schema {
namespace {

using base::format;
using base::trimmed;

/// Shortest text that reads back as the same number, without an exponent where people write none.
std::string real_text(double number) {
  const auto size = std::abs(number);
  if (size != 0 && (size < 1e-4 || size >= 1e15)) {
    auto text = base::number_text(number);
    const auto zero = text.find("e-0");
    if (zero != std::string::npos) text.erase(zero + 2, 1);
    return text;
  }
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed)
          .ptr;
  return {buffer.data(), end};
}

bool needs_quotes(std::string_view text) {
  return text.find_first_of("#\"") != std::string_view::npos || trimmed(text) != text ||
         std::any_of(text.begin(), text.end(), base::is_control) ||
         base::first_broken_utf8(text).has_value();
}

std::string entry_text(const std::string& text) {
  const bool divides = text.empty() || text.find(',') != std::string::npos;
  return divides || needs_quotes(text) ? quoted(text) : text;
}

std::string weighted_text(const WeightedText& entry) {
  const auto text = entry_text(entry.text);
  // A colon in the name needs the weight behind it, even 1, to be read back the same way.
  const bool has_colon = !text.starts_with('"') && text.find(':') != std::string::npos;
  return entry.weight == 1.0 && !has_colon ? text : format("{}:{}", text, real_text(entry.weight));
}

std::string bytes_value_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 6> units{"", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return format("{}{}", bytes, units[unit]);
}

std::string seconds_value_text(double seconds) {
  if (seconds <= 0 || std::floor(seconds) != seconds) {
    return real_text(seconds) + "s";
  }
  const auto total = static_cast<std::int64_t>(seconds);
  std::string text;
  if (total >= 3600) text += format("{}h", total / 3600);
  if (total / 60 % 60 != 0) text += format("{}min", total / 60 % 60);
  if (total % 60 != 0) text += format("{}s", total % 60);
  return text;
}

struct TextOf {
  const Key& key;

  std::string operator()(const Automatic& /*unused*/) const { return "auto"; }
  std::string operator()(std::int64_t number) const {
    return key.type == Type::bytes ? bytes_value_text(number) : format("{}", number);
  }
  std::string operator()(double number) const {
    return key.type == Type::seconds ? seconds_value_text(number) : real_text(number);
  }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(const std::string& text) const {
    const bool is_word = key.allows_auto() && text == "auto";
    return is_word || needs_quotes(text) ? quoted(text) : text;
  }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    return format("{}", base::join(list, ", "));
  }
  std::string operator()(const std::vector<std::string>& list) const {
    std::vector<std::string> entries;
    std::transform(list.begin(), list.end(), std::back_inserter(entries), entry_text);
    return format("{}", base::join(entries, ", "));
  }
  std::string operator()(const std::vector<WeightedText>& list) const {
    std::vector<std::string> entries;
    std::transform(list.begin(), list.end(), std::back_inserter(entries), weighted_text);
    return format("{}", base::join(entries, ", "));
  }
};

}  // namespace

std::string value_text(const Key& key, const Value& value) {
  return std::visit(TextOf{key}, value);
}

}  // namespace trireme::schema
