// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/plugstack_arguments.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::launch {

std::span<const PlugstackArgument> plugstack_arguments() {
  static const std::vector<PlugstackArgument> all{
      {"base",
       {},
       "/var/spool/trireme",
       "where root keeps records of jobs and mounts their folders, %h being the host name. Root "
       "alone may write to it; its parent must exist"},
      {"memlock",
       {"unlimited", "keep", "none"},
       "keep",
       "how much memory tasks may lock, which RDMA does; keep leaves the site's limit. Unlimited "
       "is "
       "for sites where cgroups bound the memory of jobs (ConstrainRAMSpace)"},
      {"core",
       {"unlimited", "keep", "none"},
       "keep",
       "core files of ranks that crash: one of every rank can fill a file system"}};
  return all;
}

std::string permitted_text(const PlugstackArgument& argument) {
  if (argument.words.empty()) return base::format("{}=/FOLDER", argument.name);
  return base::format("{}={}", argument.name, base::join(argument.words, "|"));
}

bool is_plugstack_argument(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  for (const auto& argument : plugstack_arguments()) {
    if (argument.name != name) continue;
    if (argument.words.empty()) return value.starts_with("/");
    return std::find(argument.words.begin(), argument.words.end(), value) != argument.words.end();
  }
  return false;
}

}  // namespace trireme::launch
