// trireme man: the manual page, from the command tree and the table of configuration keys.
#include "trireme/base/format.hpp"
#include "trireme/config/reference.hpp"
#include "trireme/config/schema.hpp"

#include "apps/cli_tree.hpp"
#include "apps/commands.hpp"
#include "apps/exit_codes.hpp"
#include "apps/program.hpp"
#include "build_info.hpp"

namespace trireme::apps {
namespace {

using base::format;

/// Text that roff prints as it stands: no escapes, no hyphens turned to dashes, no requests at
/// the start of a line.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    const bool at_line_start = escaped.empty() || escaped.back() == '\n';
    if (at_line_start && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else if (letter == '\n') {
      escaped += "\n.br\n";
    } else if (letter != '`') {  // Markdown's mark for code
      escaped += letter;
    }
  }
  return escaped;
}

std::string item(std::string_view title, std::string_view text) {
  return format(".TP\n.B {}\n{}\n", roff(title), roff(text));
}

std::string command_section(const CommandText& command) {
  std::string text;
  if (command.subcommands.empty()) {
    text += format(".SS {}\n{}.\n", roff(usage_line(command)), roff(command.summary));
    for (const auto& each : command.positionals) text += item(each.title, each.description);
    for (const auto& each : command.options) text += item(each.title, each.description);
    if (!command.details.empty()) text += format(".PP\n{}\n", roff(command.details));
  }
  for (const auto& subcommand : command.subcommands) text += command_section(subcommand);
  return text;
}

std::string key_section() {
  std::string text;
  for (const auto& section : config::sections()) {
    text += format(".SS {}\n{}\n", roff(section.name), roff(section.documentation));
    for (const auto& key : config::schema()) {
      if (key.section != section.name) continue;
      const auto standard = key.default_text.empty() ? "empty" : key.default_text;
      auto meaning =
          format("{} Default: {}. {}", config::kind_text(key), standard, key.documentation);
      if (key.allows_auto()) meaning += format(" auto: {}.", key.auto_rule);
      text += item(key.full_name(), meaning);
    }
  }
  return text;
}

std::string manual_page() {
  const CommandLine line;
  const auto tree = describe(line.root());
  std::string text =
      format(".TH TRIREME 1 \"\" \"Trireme {}\" \"User Commands\"\n", roff(build_info::version));
  text += format(".SH NAME\ntrireme \\- {}\n", roff(tree.summary));
  text += format(".SH SYNOPSIS\n.B trireme\n{}\n",
                 roff("COMMAND [CONFIG...] [--set SECTION.KEY=VALUE]... [OPTION...]"));
  text += ".SH OPTIONS\nThese stand before or behind any command.\n";
  for (const auto& option : tree.options) text += item(option.title, option.description);
  text += ".SH COMMANDS\n";
  for (const auto& command : tree.subcommands) text += command_section(command);
  text +=
      ".SH CONFIGURATION KEYS\nValues come from the default, then from files, then from "
      "environment variables TRIREME_SECTION__KEY, then from \\-\\-set; the last one wins.\n";
  text += key_section();
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_meanings) {
    text += item(format("{}", static_cast<int>(code)), meaning);
  }
  text += ".SH ENVIRONMENT\n";
  text += item("TRIREME_SECTION__KEY", "Sets a configuration key over files.");
  text += item("NO_COLOR", "When not empty, the log has no colours.");
  return text;
}

}  // namespace

Command man_command() {
  return {.name = "man",
          .summary = "Prints the manual page (trireme man | man -l -)",
          .group = "Documentation",
          .prepare = [](CLI::App& /*app*/) -> Action {
            return [](Context& context) {
              context.out.write(manual_page());
              return base::ExitCode::done;
            };
          }};
}

}  // namespace trireme::apps
