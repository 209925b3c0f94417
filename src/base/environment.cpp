// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/environment.hpp"

namespace trireme::base {

Environment Environment::capture(const char* const* entries) {
  std::map<std::string, std::string, std::less<>> variables;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry(*entries);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

}  // namespace trireme::base
