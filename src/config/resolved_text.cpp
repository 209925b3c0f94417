// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/resolved_text.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::config {

using base::format;

std::optional<std::string> resolved_value(std::string_view resolved_text, std::string_view key) {
  const auto dot = key.find('.');
  const auto section = format("[{}]", key.substr(0, dot));
  const auto begin = format("{} =", key.substr(dot + 1));
  bool inside = false;
  while (!resolved_text.empty()) {
    const auto end = std::min(resolved_text.find('\n'), resolved_text.size());
    auto line = resolved_text.substr(0, end);
    resolved_text.remove_prefix(std::min(end + 1, resolved_text.size()));
    if (line.starts_with('[')) inside = line == section;
    if (!inside || !line.starts_with(begin)) continue;
    line = line.substr(0, line.find('#'));
    return std::string(base::trimmed(line.substr(begin.size())));
  }
  return std::nullopt;
}

}  // namespace trireme::config
