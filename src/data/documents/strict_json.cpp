// SPDX-License-Identifier: Apache-2.0
#include "data/documents/strict_json.hpp"

#include "trireme/base/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace trireme::data {
namespace {

/// The number of an escape \uXXXX at the front.
std::optional<std::uint32_t> escaped_unit(std::string_view text) {
  constexpr std::size_t size = 6;
  if (text.size() < size || !text.starts_with("\\u")) return std::nullopt;
  std::uint32_t unit = 0;
  const auto* end = text.data() + size;
  const auto [stop, problem] = std::from_chars(text.data() + 2, end, unit, 16);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return unit;
}

bool is_high(std::uint32_t unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}
bool is_low(std::uint32_t unit) {
  return unit >= 0xDC00 && unit <= 0xDFFF;
}

class Rewriter {
 public:
  explicit Rewriter(std::string_view line) : rest_(line) { strict_.text.reserve(line.size()); }

  StrictJson run() {
    while (!rest_.empty()) {
      if (in_string_) {
        string_part();
      } else {
        outside();
      }
    }
    return std::move(strict_);
  }

 private:
  void keep(std::size_t bytes) {
    strict_.text += rest_.substr(0, bytes);
    rest_.remove_prefix(std::min(bytes, rest_.size()));
  }
  void replace(std::size_t bytes, std::string_view by) {
    strict_.text += by;
    rest_.remove_prefix(bytes);
  }

  void string_part() {
    if (rest_.front() != '\\') {
      in_string_ = rest_.front() != '"';
      keep(1);
      return;
    }
    const auto unit = escaped_unit(rest_);
    if (!unit || (!is_high(*unit) && !is_low(*unit))) {
      keep(2);
      return;
    }
    constexpr std::size_t escape = 6;
    const auto next = escaped_unit(rest_.substr(escape));
    if (is_high(*unit) && next && is_low(*next)) {
      keep(2 * escape);
      return;
    }
    replace(escape, "\\uFFFD");
    strict_.is_repaired = true;
  }

  void outside() {
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (rest_.starts_with(word)) {
        replace(word.size(), "null");
        return;
      }
    }
    const auto number = rest_.substr(0, rest_.find_first_not_of("0123456789+-.eE"));
    if (number.empty()) {
      in_string_ = rest_.front() == '"';
      keep(1);
      return;
    }
    double value = 0;
    const auto* end = number.data() + number.size();
    const auto [stop, problem] = std::from_chars(number.data(), end, value);
    if (problem == std::errc::result_out_of_range && stop == end) {
      replace(number.size(), "0");
    } else {
      keep(number.size());
    }
  }

  std::string_view rest_;
  StrictJson strict_;
  bool in_string_ = false;
};

}  // namespace

StrictJson strict_json(std::string_view line) {
  std::string storage;
  const auto well_formed = base::repair_utf8(line, storage);
  auto strict = Rewriter(well_formed).run();
  strict.is_repaired = strict.is_repaired || well_formed.data() != line.data();
  return strict;
}

}  // namespace trireme::data
