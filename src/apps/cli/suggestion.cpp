// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/suggestion.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/schema/names.hpp"
#include "trireme/schema/schema.hpp"

#include "apps/cli/cli_tree.hpp"

#include <algorithm>

namespace trireme::apps {
namespace {

void add_option_names(const CommandText& command, std::vector<std::string>& names) {
  for (const auto& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
}

/// Name in the spelling of keys: other trainers' options have dashes where keys have underscores.
std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool has(const std::vector<std::string>& list, const std::string& entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

/// Value behind the option, as "--steps=5" or "--steps 5"; VALUE where there is none.
std::string value_behind(const std::string& option, const std::vector<std::string>& arguments) {
  if (const auto equals = option.find('='); equals != std::string::npos) {
    return option.substr(equals + 1);
  }
  const auto found = std::find(arguments.begin(), arguments.end(), option);
  if (found == arguments.end() || found + 1 == arguments.end() || (found + 1)->starts_with("--")) {
    return "VALUE";
  }
  return *(found + 1);
}

std::string surplus_option(const CLI::App& app, const std::string& argument,
                           const std::vector<std::string>& arguments) {
  const auto command = describe(app);
  const auto name = argument.substr(0, argument.find('='));
  std::vector<std::string> own;
  add_option_names(command, own);
  if (has(own, name)) {
    return base::format("'{}' is an option of {} (it stands before its command); write {} {}", name,
                        command.path, command.path, name);
  }
  auto names = own;
  for (const auto* level = app.get_parent(); level != nullptr; level = level->get_parent()) {
    add_option_names(describe(*level), names);
  }
  const auto unknown = base::format("{} has no option '{}'", command.path, name);
  const auto neighbour = base::did_you_mean(name, names);
  const bool has_keys = has(own, "--set");
  const auto stem = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  const auto keys = schema::keys_called(underscored(stem));
  if (has_keys && (neighbour.empty() || !keys.empty())) {
    const auto setting = setting_meant(stem, value_behind(argument, arguments));
    if (!setting.empty()) {
      return base::format("{} (a single key is set by --set); write {}", unknown, setting);
    }
  }
  return unknown + neighbour;
}

}  // namespace

std::string setting_meant(const std::string& name, const std::string& value) {
  const auto key_name = underscored(name);
  auto keys = schema::keys_called(key_name);
  if (keys.empty() && name.find('.') != std::string::npos) {
    std::vector<std::string> all;
    for (const auto& key : schema::keys()) all.push_back(key.full_name());
    if (const auto near = base::nearest_word(key_name, all)) keys.push_back(*near);
  }
  std::vector<std::string> settings;
  for (const auto& key : keys) settings.push_back(base::format("--set {}={}", key, value));
  return base::format("{}", base::join(settings, " or "));
}

std::string surplus_text(const CLI::App& app, const std::string& argument,
                         const std::vector<std::string>& arguments) {
  if (argument.starts_with('-') && argument.size() > 1) {
    return surplus_option(app, argument, arguments);
  }
  const auto command = describe(app);
  if (!command.subcommands.empty()) {
    std::vector<std::string> names;
    for (const auto& subcommand : command.subcommands) names.push_back(subcommand.name);
    return base::format("{} has no command '{}'{}", command.path, argument,
                        base::did_you_mean(argument, names));
  }
  return base::format("{} does not take '{}' (usage: {})", command.path, argument,
                      usage_line(command));
}

}  // namespace trireme::apps
