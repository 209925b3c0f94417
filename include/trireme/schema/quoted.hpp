// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

/// Values in quotes: texts that would not come back without them, such as "a#b", or "a,b" in a
/// list. Within quotes \" and \\ are the letters themselves, and \xHH is a byte that is not UTF-8.
namespace trireme::schema {

/// The text in quotes: one line of UTF-8, whatever its bytes are.
std::string quoted(std::string_view text);

/// Bytes for a record in JSON, from which from_recorded() gives them back: a text in UTF-8 is
/// itself, all else stands in quotes.
std::string recorded(std::string_view bytes);
std::string from_recorded(std::string_view text);

struct QuotedPart {
  std::string text;
  /// Bytes that it takes, with its quotes.
  std::size_t size = 0;
};
/// Reads what stands in quotes at the front of a text. The failure is a phrase for
/// "key = text PROBLEM".
base::Result<QuotedPart> read_quoted(std::string_view text);

/// Where the statement of a line ends, and why.
struct StatementEnd {
  /// Place of the '#' that begins the comment, or the size of the line.
  std::size_t at = 0;
  /// True when quotes were opened and did not end: what is a comment cannot be told.
  bool has_open_quotes = false;
};
/// Finds the comment of "name = value # comment". Quotes that begin a value or an entry of a list
/// protect a '#'.
StatementEnd statement_end(std::string_view line);

}  // namespace trireme::schema
