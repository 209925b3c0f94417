// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/resolved_text.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/schema/quoted.hpp"

#include <algorithm>

namespace trireme::config {

std::vector<RecordedValue> recorded_values(std::string_view resolved_text) {
  std::vector<RecordedValue> values;
  std::string section;
  for (auto line : base::split(resolved_text, '\n')) {
    line = base::trimmed(line);
    if (line.starts_with('[') && line.ends_with(']')) {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const auto hash = schema::statement_end(line).at;
    const auto equals = line.substr(0, hash).find('=');
    if (section.empty() || equals == std::string_view::npos) continue;
    const auto name = base::trimmed(line.substr(0, equals));
    if (name.empty()) continue;
    const auto origin = line.substr(std::min(hash + 1, line.size()));
    values.push_back({base::format("{}.{}", section, name),
                      std::string(base::trimmed(line.substr(equals + 1, hash - equals - 1))),
                      std::string(base::trimmed(origin))});
  }
  return values;
}

std::optional<std::string> resolved_value(std::string_view resolved_text, std::string_view key) {
  for (auto& value : recorded_values(resolved_text)) {
    if (value.key == key) return std::move(value.text);
  }
  return std::nullopt;
}

}  // namespace trireme::config
