#include "text.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cctype>

namespace trireme::config {
namespace {

constexpr std::size_t max_value_bytes = std::size_t{64} << 10;

/// Length of the well-formed UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_far = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_far ? 0 : length;
}

bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == '\x7f';
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (length == 0 || is_control(text[0])) {
      shown += base::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

std::string quoted_if_odd(std::string_view text) {
  if (text.size() > 80) return base::format("'{}...'", printable(text.substr(0, 77)));
  const auto shown = printable(text);
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

std::optional<std::size_t> first_broken_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::optional<TextProblem> unfit_text(std::string_view text) {
  if (text.size() > max_value_bytes) {
    return TextProblem{"... is too long", base::format("give at most {} bytes", max_value_bytes)};
  }
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return TextProblem{"holds a control character", "remove it"};
  }
  if (first_broken_utf8(text)) return TextProblem{"is not UTF-8", "write it in UTF-8"};
  if (text.find('#') != std::string_view::npos) {
    return TextProblem{"holds '#', which starts a comment in configuration files",
                       "use a name without '#'"};
  }
  return std::nullopt;
}

}  // namespace trireme::config
