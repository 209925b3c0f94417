// SPDX-License-Identifier: Apache-2.0
// The completion script of fish.
#include "trireme/base/format.hpp"

#include "apps/cli/completion/scripts.hpp"

#include <algorithm>

namespace trireme::apps {
namespace {

using base::format;

/// Functions that the script's lines call: fish asks each condition once for a word.
constexpr std::string_view script_body = R"fish(
function __trireme_at --description 'Whether the command typed so far is this one'
    set -l place trireme
    set -l before (commandline -opc)
    for word in $before[2..-1]
        contains -- "$place $word" $__trireme_places; and set place "$place $word"
    end
    test "$place" = "$argv[1]"
end

function __trireme_settings --description 'Keys, or the values of the key that is being set'
    set -l parts (string split -m 1 = -- (string replace -r '^--set=' '' -- (commandline -ct)))
    if test (count $parts) -lt 2
        printf '%s=\n' $__trireme_keys
        return
    end
    for line in $__trireme_values
        set -l words (string split ' ' -- $line)
        test "$words[1]" = "$parts[1]"; and printf "$parts[1]=%s\n" $words[2..-1]
    end
end

complete -c trireme -e
)fish";

/// Text in single quotes, as fish reads it.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "'";
}

std::string at(const CommandText& command) {
  return fish_quoted(format("__trireme_at {}", fish_quoted(command.path)));
}

/// Options of the top level go with every command.
std::string condition(const CommandText& command) {
  return command.path == command.name ? "" : " -n " + at(command);
}

std::string option_line(const CommandText& command, const OptionText& option) {
  auto line = "complete -c trireme" + condition(command);
  for (const auto& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  const bool sets_key =
      std::find(option.names.begin(), option.names.end(), "--set") != option.names.end();
  if (sets_key) {
    line += " -x -a '(__trireme_settings)'";
  } else if (!option.choices.empty()) {
    line += format(" -x -a '{}'", base::join(option.choices, " "));
  } else if (option.takes_value) {
    line += " -r -F";
  }
  return line + " -d " + fish_quoted(short_description(option.description)) + "\n";
}

void add_command(const CommandText& command, std::string& places, std::string& lines) {
  places += " " + fish_quoted(command.path);
  for (const auto& each : command.subcommands) {
    lines += format("complete -c trireme -n {} -f -a {} -d {}\n", at(command), each.name,
                    fish_quoted(short_description(each.summary)));
  }
  for (const auto& argument : command.positionals) {
    if (argument.choices.empty()) continue;
    lines += format("complete -c trireme -n {} -f -a '{}'\n", at(command),
                    base::join(argument.choices, " "));
  }
  for (const auto& option : command.options) lines += option_line(command, option);
  for (const auto& subcommand : command.subcommands) add_command(subcommand, places, lines);
}

}  // namespace

std::string fish_script(const CommandText& root, const std::vector<KeyWords>& keys) {
  std::string places;
  std::string lines;
  add_command(root, places, lines);
  std::vector<std::string> names;
  std::string values;
  for (const auto& key : keys) {
    names.push_back(key.name);
    if (key.values.empty()) continue;
    values += format(" '{} {}'", key.name, base::join(key.values, " "));
  }
  return format(
      "# fish completion for trireme, made by: trireme completion fish\n"
      "set -g __trireme_places{}\nset -g __trireme_keys {}\nset -g __trireme_values{}\n{}{}",
      places, base::join(names, " "), values, script_body, lines);
}

}  // namespace trireme::apps
