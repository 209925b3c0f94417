// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace trireme::data {

/// A line as JSON proper, in which a member can be found.
struct StrictJson {
  std::string text;
  /// True when bytes that are not UTF-8, or halves of surrogate pairs, became U+FFFD.
  bool is_repaired = false;
};

/// Rewrites what writers of JSON lines put into them beyond RFC 8259, as Python's json module does:
/// ill-formed UTF-8 (one U+FFFD for each maximal ill-formed part), \uD800 to \uDFFF without its
/// other half (U+FFFD), NaN, Infinity and -Infinity (null), and numbers beyond fp64 (0). All else
/// stays as it is, errors too.
StrictJson strict_json(std::string_view line);

}  // namespace trireme::data
