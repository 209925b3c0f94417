// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/option_values.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace trireme::apps {
namespace {

using base::format;

template <typename Number>
CLI::Validator between(Number lowest, Number highest, const std::string& kind) {
  const auto rule = format("{} to {}", lowest, highest);
  return {[lowest, highest, rule, kind](std::string& text) -> std::string {
            Number number{};
            const bool valid =
                CLI::detail::lexical_cast(text, number) && number >= lowest && number <= highest;
            return valid ? std::string{} : format("'{}' is no {} from {}", text, kind, rule);
          },
          rule};
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

std::string not_one_of(const std::string& text, const std::vector<std::string>& words) {
  return format("'{}' is not {}{}{}", text, one_of_prefix, base::join(words, ", "),
                base::did_you_mean(text, words));
}

std::string description(const std::vector<std::string>& words) {
  return format("{}{}", one_of_prefix, base::join(words, ", "));
}

}  // namespace

CLI::Validator in_range(std::int64_t lowest, std::int64_t highest) {
  return between(lowest, highest, "whole number");
}

CLI::Validator in_range(double lowest, double highest) {
  return between(lowest, highest, "number");
}

CLI::Validator zero_or_more() {
  return {[](std::string& text) -> std::string {
            std::int64_t number = 0;
            const bool valid = CLI::detail::lexical_cast(text, number) && number >= 0;
            return valid ? std::string{} : format("'{}' is no whole number from 0", text);
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  auto text = description(words);
  return {[words = std::move(words)](std::string& value) -> std::string {
            const bool known = std::find(words.begin(), words.end(), value) != words.end();
            return known ? std::string{} : not_one_of(value, words);
          },
          std::move(text)};
}

CLI::Validator number_of(std::vector<std::pair<std::string, int>> words) {
  std::vector<std::string> names;
  for (const auto& [name, number] : words) names.push_back(name);
  auto text = description(names);
  return {[words = std::move(words), names](std::string& value) -> std::string {
            const auto wanted = lower_case(value);
            const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) {
              return lower_case(word.first) == wanted;
            });
            if (found == words.end()) return not_one_of(value, names);
            value = format("{}", found->second);
            return {};
          },
          std::move(text)};
}

}  // namespace trireme::apps
