// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What values an option takes: each rule refuses in words, and describes itself for the help
/// ("1 to 4096", "one of fp32, bf16").
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

/// One of these words.
CLI::Validator one_of(std::vector<std::string> words);

/// One of these words, large letters or small, which becomes its number: for ->transform().
CLI::Validator number_of(std::vector<std::pair<std::string, int>> words);

/// How the description of one_of() and number_of() begins; the words follow, after commas.
inline constexpr std::string_view one_of_prefix = "one of ";

}  // namespace trireme::apps
