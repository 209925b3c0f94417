// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Rules for values of options: each has an error text, and a description for the help ("1 to
/// 4096", "one of fp32, bf16").
namespace trireme::apps {

/// A whole number, both ends included.
CLI::Validator in_range(std::int64_t lowest, std::int64_t highest);
inline CLI::Validator in_range(int lowest, int highest) {
  return in_range(std::int64_t{lowest}, std::int64_t{highest});
}
/// A number, both ends included.
CLI::Validator in_range(double lowest, double highest);

/// A whole number from 0.
CLI::Validator zero_or_more();

/// Value that is one of these words.
CLI::Validator one_of(std::vector<std::string> words);

/// Value that is one of these words, in upper or lower case, and becomes its number: for
/// ->transform().
CLI::Validator number_of(std::vector<std::pair<std::string, int>> words);

/// Begin of the description of one_of() and number_of(); the words follow, after commas.
inline constexpr std::string_view one_of_prefix = "one of ";

}  // namespace trireme::apps
