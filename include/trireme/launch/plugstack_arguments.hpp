// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Arguments that a site may write behind the plugin in plugstack.conf. Manual pages, documents and
/// the plugin's own checks are made from this table.
namespace trireme::launch {

/// Argument NAME=VALUE of the plugin's line in plugstack.conf.
struct PlugstackArgument {
  std::string_view name;
  /// Words that are values; empty where it is a folder.
  std::vector<std::string_view> words;
  std::string_view standard;
  std::string_view meaning;
};
std::span<const PlugstackArgument> plugstack_arguments();

/// "memlock=unlimited|keep|none", "base=/FOLDER".
std::string permitted_text(const PlugstackArgument& argument);

/// NAME=VALUE of the table: a known name with one of its words, or with a path from the root down.
bool is_plugstack_argument(std::string_view text);

}  // namespace trireme::launch
