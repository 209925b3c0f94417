// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/text.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <cctype>

namespace trireme::schema {
namespace {

constexpr std::size_t max_value_bytes = std::size_t{64} << 10;

}  // namespace

std::string quoted_if_odd(std::string_view text) {
  if (text.size() > 80) return base::format("'{}...'", base::printable(text.substr(0, 77)));
  const auto shown = base::printable(text);
  const bool odd = text.empty() || text.find_first_of(" ;()") != std::string_view::npos;
  return odd ? base::format("'{}'", shown) : shown;
}

std::string purpose(const Key& key) {
  std::string clause(key.documentation.substr(0, key.documentation.find_first_of(".;:(,")));
  while (clause.ends_with(' ')) clause.pop_back();
  const bool acronym =
      clause.size() > 1 && std::isupper(static_cast<unsigned char>(clause[1])) != 0;
  if (!clause.empty() && !acronym) {
    clause[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(clause[0])));
  }
  return clause;
}

std::optional<TextProblem> unfit_text(std::string_view text) {
  if (text.size() > max_value_bytes) {
    return TextProblem{"... is too long", base::format("give at most {} bytes", max_value_bytes)};
  }
  if (std::any_of(text.begin(), text.end(), base::is_control)) {
    return TextProblem{"holds a control character", "remove it"};
  }
  return std::nullopt;
}

}  // namespace trireme::schema
