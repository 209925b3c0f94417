// SPDX-License-Identifier: Apache-2.0
// trireme man: the manual pages. The first is made here, from the command tree and the table of
// configuration keys; those of the launch in man_launch.cpp.
#include "trireme/base/format.hpp"
#include "trireme/schema/reference.hpp"
#include "trireme/schema/schema.hpp"

#include "apps/cli/cli_tree.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/man/man_pages.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/exit_codes.hpp"
#include "apps/program.hpp"
#include "build_info.hpp"

#include <memory>

namespace trireme::apps {
namespace {

using base::format;

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
  for (const auto& section : schema::sections()) {
    text += format(".SS {}\n{}\n", roff(section.name), roff(section.documentation));
    for (const auto& key : schema::keys()) {
      if (key.section != section.name) continue;
      const auto standard = key.default_text.empty() ? "empty" : key.default_text;
      auto meaning =
          format("{} Default: {}. {}", schema::kind_text(key), standard, key.documentation);
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
  text += item("FORCE_COLOR, CLICOLOR_FORCE",
               "When neither empty nor 0, the log has colours even where it is no terminal, as "
               "under mpirun.");
  text += format(".SH SEE ALSO\n{}\n", roff("trireme-launch(7), spank_trireme(8)"));
  return text;
}

constexpr const char* pages[] = {"trireme", "trireme-launch", "spank_trireme"};

std::string page_text(const std::string& page) {
  if (page == pages[1]) return launch_page();
  return page == pages[2] ? plugin_page() : manual_page();
}

}  // namespace

Command man_command() {
  return {.name = "man",
          .summary = "Prints a manual page (trireme man | man -l -)",
          .group = "Documentation",
          .prepare = [](CLI::App& app) -> Action {
            auto page = std::make_shared<std::string>(pages[0]);
            app.add_option("PAGE", *page,
                           "trireme (the default), trireme-launch (how a request reaches the "
                           "ranks) or spank_trireme (the Slurm plugin)")
                ->check(one_of({std::begin(pages), std::end(pages)}));
            return [page](Context& context) {
              context.out.write(page_text(*page));
              return base::ExitCode::done;
            };
          }};
}

}  // namespace trireme::apps
