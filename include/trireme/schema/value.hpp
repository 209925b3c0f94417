// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trireme::schema {

struct Key;

/// The value `auto`.
struct Automatic {
  bool operator==(const Automatic&) const = default;
};

/// An entry of a list with weights: "books:0.7" (weight 1 when none is given).
struct WeightedText {
  std::string text;
  double weight = 1.0;
  bool operator==(const WeightedText&) const = default;
};

using Value =
    std::variant<Automatic, std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                 std::vector<std::string>, std::vector<WeightedText>>;

/// Reads and range-checks the text of a value. The failure names key, value, rule and fix.
base::Result<Value> parse_value(const Key& key, std::string_view text);

/// Canonical text: parse_value() of it gives the same value, and equal values give equal texts.
std::string value_text(const Key& key, const Value& value);

/// Sizes: whole or decimal number and B, kB, MB, GB, TB, PB (powers of 1000) or KiB ... PiB
/// (powers of 1024); a bare number is bytes. The failure is a phrase: "is not a size; ...".
base::Result<std::int64_t> parse_bytes(std::string_view text);

/// Times: 90s, 2h, 1h30m, 500ms, 1.5d; units d, h, m or min, s, ms, largest first; a bare number
/// is seconds. At most 10 years.
base::Result<double> parse_seconds(std::string_view text);

}  // namespace trireme::schema
