// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/cli_tree.hpp"

#include "trireme/base/format.hpp"

#include "apps/cli/option_values.hpp"

#include <algorithm>

namespace trireme::apps {
namespace {

using base::format;

constexpr std::size_t title_width = 28;
constexpr std::size_t text_width = 96;

/// Placeholder for the value of an option, and the rule for it.
struct ValueText {
  std::string name;
  std::string rule;
  std::vector<std::string> choices;
};

/// CLI11 puts the name of the type and descriptions of the rules into one text, after colons.
ValueText value_of(const CLI::Option& option) {
  const auto whole = option.get_type_name();
  const auto colon = whole.find(':');
  ValueText value{whole.substr(0, colon), {}, {}};
  if (colon != std::string::npos) value.rule = whole.substr(colon + 1);
  // CLI11's own names of types.
  if (value.name == "INT" || value.name == "UINT") value.name = "N";
  if (value.name == "FLOAT") value.name = "X";
  if (value.rule.starts_with(one_of_prefix)) {
    for (auto rest = value.rule.substr(one_of_prefix.size()); !rest.empty();) {
      const auto comma = rest.find(", ");
      value.choices.push_back(rest.substr(0, comma));
      rest = comma == std::string::npos ? std::string{} : rest.substr(comma + 2);
    }
  }
  return value;
}

/// True if a text contains each of these words; false where there are none.
bool names_all(const std::string& text, const std::vector<std::string>& words) {
  return !words.empty() && std::all_of(words.begin(), words.end(), [&text](const auto& word) {
    return text.find(word) != std::string::npos;
  });
}

/// The default as a user would write it: CLI11 puts lists into brackets.
std::string default_of(const CLI::Option& option) {
  auto text = option.get_default_str();
  if (option.get_items_expected_max() > 1 && text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

OptionText describe_option(const CLI::Option& option) {
  OptionText text;
  text.takes_value = option.get_items_expected_max() > 0;
  text.required = option.get_required();
  // "Options" is what CLI11 calls the group of all that were given none.
  if (option.get_group() != "Options") text.group = option.get_group();
  text.description = option.get_description();
  const auto value = value_of(option);
  text.choices = value.choices;
  if (!value.rule.empty() && !names_all(text.description, value.choices)) {
    text.description += format(" ({})", value.rule);
  }
  if (const auto standard = default_of(option); !standard.empty() && text.takes_value) {
    text.description += format(" [{}]", standard);
  }
  if (option.get_positional()) {
    text.title = option.get_name(true);
    if (option.get_items_expected_max() > 1) text.title += "...";
    return text;
  }
  std::vector<std::string> shown;
  for (const auto& name : option.get_snames()) shown.push_back("-" + name);
  for (const auto& name : option.get_lnames()) {
    text.names.push_back("--" + name);
    shown.push_back("--" + name);
  }
  for (const auto& name : option.get_snames()) text.names.push_back("-" + name);
  text.title = format("{}", base::join(shown, ", "));
  if (text.takes_value) text.title += " " + value.name;
  return text;
}

/// Earlier words of options, which no help shows (CommandLine marks them so).
bool is_hidden(const CLI::App& app, const CLI::Option* option) {
  const bool is_of_every_command = option == app.get_help_ptr() || option == app.get_version_ptr();
  return !option->get_configurable() && !is_of_every_command;
}

std::string path_of(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

/// Paragraph broken between words; lines after the first begin at `indent`, where the first is
/// assumed to begin, too.
std::string wrapped(std::string_view paragraph, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  while (!paragraph.empty()) {
    const auto space = paragraph.find(' ', paragraph.find_first_not_of(' '));
    const auto word = paragraph.substr(0, space);
    if (column > indent && column + 1 + word.size() > text_width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    paragraph.remove_prefix(space == std::string_view::npos ? paragraph.size() : space + 1);
  }
  return text;
}

/// "  title        description", the description wrapped under itself.
std::string row(std::string_view title, std::string_view description) {
  std::string text = format("  {:<{}}", title, title_width - 2);
  // A long title stands on a line of its own.
  if (title.size() > title_width - 4) text += "\n" + std::string(title_width, ' ');
  return text + wrapped(description, title_width) + "\n";
}

/// Rows under one heading a group, groups in the order of their first member.
template <typename Row, typename Title, typename Body>
std::string grouped(const std::vector<Row>& rows, const std::string& otherwise, const Title& title,
                    const Body& body) {
  std::vector<std::string> groups;
  const auto group_of = [&otherwise](const Row& each) {
    return each.group.empty() ? otherwise : each.group;
  };
  for (const auto& each : rows) {
    const auto group = group_of(each);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  std::string text;
  for (const auto& group : groups) {
    text += format("\n{}:\n", group);
    for (const auto& each : rows) {
      if (group_of(each) == group) text += row(title(each), body(each));
    }
  }
  return text;
}

}  // namespace

CommandText describe(const CLI::App& app) {
  CommandText text;
  text.name = app.get_name();
  text.path = path_of(app);
  text.summary = app.get_description();
  text.details = app.get_footer();
  const bool is_root = app.get_parent() == nullptr;
  if (!is_root) text.group = app.get_group();
  for (const auto* option : app.get_options()) {
    // Every command inherits the help flag; the top level describes it for all.
    if (is_hidden(app, option) || (!is_root && option == app.get_help_ptr())) continue;
    auto& list = option->get_positional() ? text.positionals : text.options;
    list.push_back(describe_option(*option));
  }
  for (const auto* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    text.subcommands.push_back(describe(*subcommand));
  }
  return text;
}

std::string usage_line(const CommandText& command) {
  std::string text = command.path;
  if (!command.subcommands.empty()) text += " COMMAND";
  for (const auto& positional : command.positionals) {
    text += " " + (positional.required ? positional.title : "[" + positional.title + "]");
  }
  for (const auto& option : command.options) {
    if (option.required) text += " " + option.title;
  }
  return text + " [OPTION...]";
}

std::string help_text(const CommandText& command, const CommandText& root) {
  const auto title = [](const OptionText& option) { return option.title; };
  const auto body = [](const OptionText& option) { return option.description; };
  std::string text = format("usage: {}\n\n{}.\n", usage_line(command), command.summary);
  text += grouped(
      command.subcommands, "Commands", [](const CommandText& each) { return each.name; },
      [](const CommandText& each) { return each.summary; });
  text += grouped(command.positionals, "Arguments", title, body);
  text += grouped(command.options, "Options", title, body);
  if (command.path != root.path) text += grouped(root.options, "Everywhere", title, body);
  if (!command.details.empty()) text += "\n";
  for (std::string_view rest = command.details; !rest.empty();) {
    const auto end = rest.find('\n');
    text += wrapped(rest.substr(0, end), 0) + "\n";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

}  // namespace trireme::apps
