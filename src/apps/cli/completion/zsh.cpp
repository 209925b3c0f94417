// SPDX-License-Identifier: Apache-2.0
// The completion script of zsh.
#include "trireme/base/format.hpp"

#include "apps/cli/completion/scripts.hpp"

namespace trireme::apps {
namespace {

using base::format;

/// Function that reads the tables. Its first line, "#compdef", is what zsh looks for.
constexpr std::string_view script_body = R"zsh(
_trireme() {
  local place=trireme word=${words[CURRENT]} before=${words[CURRENT-1]} each
  local -a offered
  for each in "${(@)words[2,CURRENT-1]}"; do
    (( ${+_trireme_flags[$place $each]} )) && place="$place $each"
  done

  # "--option=value" is an option and its value.
  if [[ $word == --*=* ]]; then
    before=${word%%=*}
    compset -P 1 '*='
  fi
  if [[ $before == --set ]]; then
    if compset -P 1 '*='; then
      compadd -- ${=_trireme_values[${${word#--set=}%%=*}]}
    else
      compadd -S = -- $_trireme_keys
    fi
  elif (( ${+_trireme_choices[$place $before]} )); then
    compadd -- ${=_trireme_choices[$place $before]}
  elif [[ $word == -* && $before != --*=* ]]; then
    offered=(${(f)_trireme_flags[$place]})
    [[ $place == trireme ]] || offered+=(${(f)_trireme_flags[trireme]})
    _describe -o option offered
  elif (( ${+_trireme_commands[$place]} )); then
    offered=(${(f)_trireme_commands[$place]})
    _describe command offered
  elif (( ${+_trireme_choices[$place]} )); then
    compadd -- ${=_trireme_choices[$place]}
  else
    _files
  fi
}
# Read as a file of $fpath, this is the function's first call; else it is sourced.
if [[ $funcstack[1] == _trireme ]]; then _trireme "$@"; else compdef _trireme trireme; fi
)zsh";

/// Lines of the script's lookup tables so far.
struct Tables {
  /// Lines "name:summary" by command.
  std::string commands;
  std::string flags;
  /// Choices by command and option, or by command only for an argument without one.
  std::string choices;
};

std::string entry(const std::string& key, const std::string& value) {
  return format("  {} {}\n", single_quoted(key), single_quoted(value));
}

void add_command(const CommandText& command, Tables& tables) {
  std::vector<std::string> lines;
  for (const auto& each : command.subcommands) lines.push_back(each.name + ":" + each.summary);
  if (!lines.empty()) {
    tables.commands += entry(command.path, format("{}", base::join(lines, "\n")));
  }
  lines.clear();
  for (const auto& option : command.options) {
    for (const auto& name : option.names) {
      lines.push_back(name + ":" + short_description(option.description));
      if (option.choices.empty()) continue;
      tables.choices +=
          entry(command.path + " " + name, format("{}", base::join(option.choices, " ")));
    }
  }
  tables.flags += entry(command.path, format("{}", base::join(lines, "\n")));
  for (const auto& argument : command.positionals) {
    if (argument.choices.empty()) continue;
    tables.choices += entry(command.path, format("{}", base::join(argument.choices, " ")));
  }
  for (const auto& subcommand : command.subcommands) add_command(subcommand, tables);
}

}  // namespace

std::string zsh_script(const CommandText& root, const std::vector<KeyWords>& keys) {
  Tables tables;
  add_command(root, tables);
  std::string values;
  std::vector<std::string> names;
  for (const auto& key : keys) {
    names.push_back(key.name);
    if (!key.values.empty()) {
      values += entry(key.name, format("{}", base::join(key.values, " ")));
    }
  }
  return format(
      "#compdef trireme\n"
      "# zsh completion for trireme, made by: trireme completion zsh\n"
      "typeset -gA _trireme_commands _trireme_flags _trireme_choices _trireme_values\n"
      "_trireme_commands=(\n{})\n_trireme_flags=(\n{})\n_trireme_choices=(\n{})\n"
      "_trireme_values=(\n{})\ntypeset -ga _trireme_keys=({})\n{}",
      tables.commands, tables.flags, tables.choices, values, base::join(names, " "), script_body);
}

}  // namespace trireme::apps
