// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme::config {

/// The value of a key in what Config::resolved_text() made, in this version or another: such a text
/// may hold keys that are not known here, and lack others.
std::optional<std::string> resolved_value(std::string_view resolved_text, std::string_view key);

}  // namespace trireme::config
