// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::base {

/// The candidate that a misspelt word most likely meant, if any is near.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string> candidates);

/// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// All divisors of `number`, ascending: the valid choices for a degree.
std::vector<int> divisors(int number);

}  // namespace trireme::base
