#include "apps/suggestion.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include "apps/cli_tree.hpp"

namespace trireme::apps {
namespace {

void add_option_names(const CommandText& command, std::vector<std::string>& names) {
  for (const auto& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
}

}  // namespace

std::string surplus_text(const CLI::App& app, const std::string& argument) {
  const auto command = describe(app);
  if (argument.starts_with('-') && argument.size() > 1) {
    std::vector<std::string> names;
    for (const auto* level = &app; level != nullptr; level = level->get_parent()) {
      add_option_names(describe(*level), names);
    }
    const auto name = argument.substr(0, argument.find('='));
    return base::format("{} has no option '{}'{}", command.path, name,
                        base::did_you_mean(name, names));
  }
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
