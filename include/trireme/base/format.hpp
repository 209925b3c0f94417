// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>

/// Text from values. The only place that names the formatting library.
namespace trireme::base {

using fmt::format;
using fmt::format_string;
using fmt::join;

/// Shortest decimal text that reads back as the same number ("nan", "inf" for what JSON lacks).
std::string number_text(float value);
std::string number_text(double value);

/// The number with so many digits behind the point; "nan" whatever its sign, which says nothing.
std::string fixed_text(double value, int digits);

/// "999", "12.3 thousand", "124.4 million", "70.55 billion": a large number for people.
std::string count_text(double count);

/// "1.50 GiB", "12 B": a size for people.
std::string bytes_text(std::uint64_t bytes);

/// "1 h 12 min", "3.2 s", "180 us": a duration for people.
std::string duration_text(double seconds);

}  // namespace trireme::base
