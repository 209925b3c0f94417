// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/cli/cli_tree.hpp"

#include <string>
#include <vector>

/// Completion scripts of shells. All are made from the command tree and the configuration keys, and
/// offer the same words.
namespace trireme::apps {

/// A configuration key as a shell completes it.
struct KeyWords {
  /// "parallel.schedule".
  std::string name;
  /// Allowed values, where they are words of a fixed set.
  std::vector<std::string> values;
};

std::vector<std::string> names_of(const std::vector<CommandText>& commands);

/// Begin of a description, which one line of a terminal has room for: its first clause.
std::string short_description(const std::string& description);

/// Text in single quotes, as POSIX shells and zsh read it.
std::string single_quoted(const std::string& text);

std::string bash_script(const CommandText& root, const std::vector<KeyWords>& keys);
std::string zsh_script(const CommandText& root, const std::vector<KeyWords>& keys);
std::string fish_script(const CommandText& root, const std::vector<KeyWords>& keys);

}  // namespace trireme::apps
