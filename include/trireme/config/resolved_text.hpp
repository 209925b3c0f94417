// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::config {

/// A value as a run has recorded it.
struct RecordedValue {
  std::string key;  ///< "section.key"
  std::string text;
  std::string origin;  ///< "a.conf:3"; empty where it is not recorded
};

/// All values of what Config::resolved_text() made, in this version or another, in their order.
/// Lines that are no values are passed over.
std::vector<RecordedValue> recorded_values(std::string_view resolved_text);

/// The value of one key in such a text, which may hold keys that are not known here, and lack
/// others.
std::optional<std::string> resolved_value(std::string_view resolved_text, std::string_view key);

}  // namespace trireme::config
