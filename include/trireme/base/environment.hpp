// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::base {

/// The process environment, captured once at the entry point and handed down as a value:
/// nothing below calls getenv, and tests hand in what they like.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables)
      : variables_(std::move(variables)) {}

  /// Copy of a null-terminated array of "NAME=value" (the third argument of main).
  static Environment capture(const char* const* entries);

  std::optional<std::string> get(std::string_view name) const;
  bool has(std::string_view name) const { return variables_.find(name) != variables_.end(); }
  const std::map<std::string, std::string, std::less<>>& variables() const { return variables_; }

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace trireme::base
