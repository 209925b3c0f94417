// SPDX-License-Identifier: Apache-2.0
// trireme completion bash|zsh|fish: a completion script, from the command tree and the
// configuration keys.
#include "trireme/schema/schema.hpp"

#include "apps/cli/cli_tree.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/completion/scripts.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/program.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace trireme::apps {
namespace {

std::vector<KeyWords> all_keys() {
  std::vector<KeyWords> all;
  for (const auto& key : schema::keys()) {
    KeyWords words{key.full_name(), {key.choices.begin(), key.choices.end()}};
    if (key.type == schema::Type::flag) words.values = {"true", "false"};
    if (key.allows_auto()) words.values.emplace_back("auto");
    all.push_back(std::move(words));
  }
  return all;
}

struct Shell {
  const char* name;
  std::string (*script)(const CommandText&, const std::vector<KeyWords>&);
};
constexpr std::array<Shell, 3> shells{
    {{"bash", &bash_script}, {"zsh", &zsh_script}, {"fish", &fish_script}}};

Action prepare_completion(CLI::App& app) {
  std::vector<std::string> names;
  for (const auto& shell : shells) names.emplace_back(shell.name);
  auto name = std::make_shared<std::string>();
  app.add_option("SHELL", *name, "bash, zsh or fish")->required()->check(one_of(names));
  return [name](Context& context) {
    const auto* const shell = std::find_if(shells.begin(), shells.end(),
                                           [&](const Shell& each) { return each.name == *name; });
    const CommandLine line;
    context.out.write(shell->script(describe(line.root()), all_keys()));
    return base::ExitCode::done;
  };
}

}  // namespace

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command.name);
  return names;
}

std::string short_description(const std::string& description) {
  constexpr std::size_t most = 72;
  auto clause = description.substr(0, description.find_first_of(";\n"));
  if (clause.size() <= most) return clause;
  return clause.substr(0, clause.rfind(' ', most)) + " ...";
}

std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

Command completion_command() {
  return {.name = "completion",
          .summary = "Prints a completion script for a shell",
          .group = "Documentation",
          .details =
              "bash: source <(trireme completion bash), or for good: trireme completion bash > "
              "/etc/bash_completion.d/trireme\n"
              "zsh:  trireme completion zsh > a folder of $fpath/_trireme\n"
              "fish: trireme completion fish > ~/.config/fish/completions/trireme.fish\n"
              "Packages install all three.",
          .prepare = prepare_completion};
}

}  // namespace trireme::apps
