// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// UTF-8 (Unicode 15, table 3-7). Names, values and texts from outside may hold any bytes: what is
/// opened keeps them, what is shown or written for others to read has U+FFFD in their place.
namespace trireme::base {

/// U+FEFF, which programs of Windows write before a text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Bytes at the front that are well-formed.
std::size_t well_formed_prefix(std::string_view text);

/// The text itself when it is well-formed; else a copy in `storage` whose every maximal ill-formed
/// part is one U+FFFD, as Python's errors="replace" and Rust's from_utf8_lossy make it.
std::string_view repair_utf8(std::string_view text, std::string& storage);

/// A copy of the text, repaired in the same way.
std::string repaired_utf8(std::string_view text);

/// Why bytes are no text in UTF-8 at all, and what helps.
struct NotText {
  std::string fact;  ///< "is UTF-16" or "has a NUL at byte N" (as UTF-16 without a mark has)
  std::string_view fix;
};
/// The rule of files that people write (configurations, prompts). Nothing for what can be read,
/// even if with U+FFFD for some bytes.
std::optional<NotText> not_text(std::string_view bytes);

/// Appends one code point, which is at most U+10FFFF.
void append_utf8(std::string& text, char32_t code_point);

}  // namespace trireme::base
