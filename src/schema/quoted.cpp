// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/quoted.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utf8.hpp"

#include <charconv>
#include <cstdint>

namespace trireme::schema {

using base::format;

std::string quoted(std::string_view text) {
  std::string written = "\"";
  while (!text.empty()) {
    const auto good = text.substr(0, base::well_formed_prefix(text));
    for (const char letter : good) {
      if (letter == '"' || letter == '\\') written += '\\';
      if (base::is_control(letter)) {
        written += format("\\x{:02x}", static_cast<unsigned char>(letter));
      } else {
        written += letter;
      }
    }
    text.remove_prefix(good.size());
    if (text.empty()) break;
    written += format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
  }
  return written + '"';
}

base::Result<QuotedPart> read_quoted(std::string_view text) {
  QuotedPart part;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') {
      part.size = at + 1;
      return part;
    }
    if (text[at] != '\\') {
      part.text += text[at];
      continue;
    }
    const auto escaped = text.substr(at + 1, 3);
    if (escaped.starts_with('"') || escaped.starts_with('\\')) {
      part.text += escaped.front();
      ++at;
      continue;
    }
    std::uint8_t byte = 0;
    const auto* end = escaped.data() + escaped.size();
    const auto digits = escaped.substr(std::min<std::size_t>(escaped.size(), 1));
    const auto [stop, problem] = std::from_chars(digits.data(), end, byte, 16);
    if (!escaped.starts_with('x') || digits.size() != 2 || problem != std::errc{} || stop != end) {
      return base::usage_failure(
          format("has '\\{}' in its quotes", base::printable(escaped.substr(0, 1))));
    }
    part.text += static_cast<char>(byte);
    at += 3;
  }
  return base::usage_failure("has quotes that do not end");
}

std::string recorded(std::string_view bytes) {
  const bool is_plain = !bytes.starts_with('"') && !base::first_broken_utf8(bytes);
  return is_plain ? std::string(bytes) : quoted(bytes);
}

std::string from_recorded(std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  const auto part = read_quoted(text);
  return part ? part->text : std::string(text);
}

StatementEnd statement_end(std::string_view line) {
  bool in_quotes = false;
  bool in_value = false;
  // Only where a value or an entry begins do quotes open: an inch sign within a text is a letter.
  bool may_open = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char letter = line[at];
    if (in_quotes) {
      if (letter == '\\') ++at;
      in_quotes = letter != '"';
      continue;
    }
    if (letter == '#') return {at};
    in_quotes = may_open && letter == '"';
    const bool blank = letter == ' ' || letter == '\t';
    may_open = (letter == '=' && !in_value) || (letter == ',' && in_value) || (may_open && blank);
    in_value = in_value || letter == '=';
  }
  return {line.size(), in_quotes};
}

}  // namespace trireme::schema
