// SPDX-License-Identifier: Apache-2.0
// The completion script of bash.
#include "trireme/base/format.hpp"

#include "apps/cli/completion/scripts.hpp"

namespace trireme::apps {
namespace {

using base::format;

/// Script without its tables. Bash splits words at '=' by default, so a setting "train.steps=1"
/// arrives as one word or as three.
constexpr std::string_view script_body = R"bash(
_trireme() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local path=trireme index candidate key=
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; ++index)); do
    candidate="$path ${COMP_WORDS[index]}"
    [[ -n ${_trireme_flags[$candidate]+set} ]] && path=$candidate
  done

  # A value: behind "--set KEY =".
  if [[ $word == = && ${COMP_WORDS[COMP_CWORD - 2]} == --set ]]; then
    key=$before word=
  elif [[ $before == = && ${COMP_WORDS[COMP_CWORD - 3]:-} == --set ]]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $before == --set && $word == *=* ]]; then
    key=${word%%=*} word=${word#*=}
    COMPREPLY=($(compgen -P "$key=" -W "${_trireme_values[$key]:-}" -- "$word"))
    return
  fi
  if [[ -n $key ]]; then
    COMPREPLY=($(compgen -W "${_trireme_values[$key]:-}" -- "$word"))
    return
  fi

  if [[ -n ${_trireme_choices["$path $before"]:-} ]]; then
    COMPREPLY=($(compgen -W "${_trireme_choices["$path $before"]}" -- "$word"))
  elif [[ $before == --set ]]; then
    compopt -o nospace 2>/dev/null
    COMPREPLY=($(compgen -S = -W "$_trireme_keys" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "${_trireme_flags[$path]} ${_trireme_flags[trireme]}" -- "$word"))
  elif [[ -n ${_trireme_commands[$path]:-} ]]; then
    COMPREPLY=($(compgen -W "${_trireme_commands[$path]}" -- "$word"))
  elif [[ -n ${_trireme_choices[$path]:-} ]]; then
    COMPREPLY=($(compgen -W "${_trireme_choices[$path]}" -- "$word"))
  fi
  # Nothing offered: bash completes file names.
}
complete -o bashdefault -o default -F _trireme trireme
)bash";

/// Lines of the script's lookup tables so far.
struct Tables {
  std::string commands;
  std::string flags;
  /// Choices by command and option, or by command only for an argument without one.
  std::string choices;
};

void add_choices(const std::string& key, const OptionText& option, Tables& tables) {
  if (option.choices.empty()) return;
  tables.choices += format("  [\"{}\"]=\"{}\"\n", key, base::join(option.choices, " "));
}

void add_command(const CommandText& command, Tables& tables) {
  const auto names = names_of(command.subcommands);
  if (!names.empty()) {
    tables.commands += format("  [\"{}\"]=\"{}\"\n", command.path, base::join(names, " "));
  }
  std::vector<std::string> options;
  for (const auto& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    for (const auto& name : option.names) add_choices(command.path + " " + name, option, tables);
  }
  for (const auto& argument : command.positionals) add_choices(command.path, argument, tables);
  tables.flags += format("  [\"{}\"]=\"{}\"\n", command.path, base::join(options, " "));
  for (const auto& subcommand : command.subcommands) add_command(subcommand, tables);
}

}  // namespace

std::string bash_script(const CommandText& root, const std::vector<KeyWords>& keys) {
  Tables tables;
  add_command(root, tables);
  std::string values;
  std::vector<std::string> names;
  for (const auto& key : keys) {
    names.push_back(key.name);
    if (key.values.empty()) continue;
    values += format("  [\"{}\"]=\"{}\"\n", key.name, base::join(key.values, " "));
  }
  return format(
      "# bash completion for trireme, made by: trireme completion bash\n"
      "declare -gA _trireme_commands=(\n{})\n"
      "declare -gA _trireme_flags=(\n{})\n"
      "declare -gA _trireme_choices=(\n{})\n"
      "declare -gA _trireme_values=(\n{})\n"
      "_trireme_keys=\"{}\"\n{}",
      tables.commands, tables.flags, tables.choices, values, base::join(names, " "), script_body);
}

}  // namespace trireme::apps
