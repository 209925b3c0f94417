// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::data {

/// Refuses (exit code 6) what is no text by its first bytes: magic numbers of formats that people
/// keep data sets in, and UTF-16.
base::Status check_format(std::string_view beginning, const std::string& source);

/// Refuses (exit code 6) a NUL in a stretch of plain text that begins at a byte of its file. (In
/// JSON lines it is the line that is bad.)
base::Status check_plain_text(std::string_view text, std::uint64_t begins_at,
                              const std::string& source);

}  // namespace trireme::data
