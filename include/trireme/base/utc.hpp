// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::base {

/// "2026-11-22T05:03:11.250Z": a moment for files, which are read later and elsewhere (ISO 8601).
std::string utc_text(const timespec& moment);
/// The same, of now.
std::string utc_text();

/// Milliseconds since 1970 of such a text, or of one with whole seconds; nothing of any other.
std::optional<std::int64_t> utc_milliseconds(std::string_view text);

}  // namespace trireme::base
