// SPDX-License-Identifier: Apache-2.0
#include "apps/program.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/log_terminal.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/store/object_store.hpp"

#include "apps/cli/cli_tree.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/suggestion.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/exit_codes.hpp"
#include "apps/version.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;

/// Writes text to stderr, each line with the program's name. A failure of stderr is ignored.
void complain(std::string_view text) {
  std::string repaired;
  text = base::repair_utf8(text, repaired);
  std::string lines;
  base::log::set_status_line("");
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines += format("trireme: {}\n", text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  std::fputs(lines.c_str(), stderr);
}

/// Waits for the launcher's end of all ranks, so long at most; the exit code stays our own.
void await_end(int seconds) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  const timespec limit{.tv_sec = seconds, .tv_nsec = 0};
  sigtimedwait(&end, nullptr, &limit);
}

/// Reports an error that all ranks have. Launchers end all ranks when the first has ended with an
/// error: rank 0 reports and ends first, then the first rank of each other node (its node may have
/// an error of its own), then all others, without a report.
void complain(std::string_view text, Voice voice) {
  if (voice == Voice::speaks_late) await_end(1);
  if (voice == Voice::silent) await_end(3);
  if (voice != Voice::silent) complain(text);
}

void configure_log(const CommandLine& line, const base::Environment& environment) {
  base::log::Settings settings;
  if (line.quiet()) settings.threshold = base::log::Level::warning;
  if (line.verbose()) settings.threshold = base::log::Level::debug;
  settings.colour = wants_colour(environment, STDERR_FILENO);
  base::log::configure(settings);
  base::log::attach_terminal(log_terminal(environment));
}

/// Innermost command at which parsing ended.
const CLI::App& deepest(const CLI::App& root) {
  const CLI::App* app = &root;
  for (;;) {
    const auto parsed =
        app->get_subcommands([](const CLI::App* candidate) { return candidate->count() > 0; });
    if (parsed.empty()) return *app;
    app = parsed.back();
  }
}

std::string exit_code_lines() {
  std::string text = "Exit codes:";
  for (const auto& [code, meaning] : exit_meanings) {
    text += format("\n  {:<4}{}", static_cast<int>(code), meaning);
  }
  return text;
}

/// Options that no help shows are in no group when they are declared; CLI11 would leave their names
/// out of its errors. From here on describe() knows them by being of no configuration file.
void name_hidden_options(CLI::App& app) {
  for (auto* option : app.get_options()) {
    if (option->get_group().empty()) option->group("Options")->configurable(false);
  }
}

ExitCode usage_error(const CLI::App& app, const std::string& text, Voice voice) {
  complain(format("{}\nsee: {} --help", text, describe(app).path), voice);
  return ExitCode::usage;
}

/// Roles of this process in what all ranks would say alike.
struct Voices {
  Voice error;
  /// Help and version: whoever asks for them gets them, unless a launcher surely asks at many ranks
  /// at once.
  Voice answer;
};

/// Usage without an error: no command was named.
ExitCode no_command(const CLI::App& root, const CLI::App& app, Output& out, Voices voices) {
  const auto tree = describe(app);
  if (&app == &root) {
    if (voices.answer == Voice::speaks) out.write(help_text(tree, tree));
    return ExitCode::done;
  }
  std::vector<std::string> names;
  for (const auto& subcommand : tree.subcommands) names.push_back(subcommand.name);
  return usage_error(app,
                     format("{} needs one of its commands: {}", tree.path, base::join(names, ", ")),
                     voices.error);
}

ExitCode parse_and_run(const std::vector<std::string>& arguments, Context& context, Voices voices) {
  CommandLine line;
  auto& root = line.root();
  try {
    // CLI11 takes the arguments in reverse order.
    root.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    if (voices.answer == Voice::speaks) {
      context.out.write(help_text(describe(deepest(root)), describe(root)));
    }
    return ExitCode::done;
  } catch (const CLI::CallForVersion&) {
    if (voices.answer == Voice::speaks) context.out.write(version_text());
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    const auto& app = deepest(root);
    const auto surplus = root.remaining(true);
    return usage_error(
        app, surplus.empty() ? error.what() : surplus_text(app, surplus.front(), arguments),
        voices.error);
  }
  if (!line.action()) return no_command(root, deepest(root), context.out, voices);
  configure_log(line, context.environment);
  return line.action()(context);
}

}  // namespace

CommandLine::CommandLine()
    : root_(std::make_unique<CLI::App>("Launches and runs large-model training on HPC clusters",
                                       "trireme")) {
  root_->require_subcommand(0, 1);
  // Options of the top level may stand behind a command.
  root_->fallthrough();
  root_->set_help_flag("-h,--help", "Prints help on the command and ends");
  root_->set_version_flag("--version", "trireme",
                          "Prints version, commit and what this build has, and ends");
  root_->add_flag("-q,--quiet", quiet_, "Logs warnings and errors only");
  auto* verbose = root_->add_flag("-v,--verbose", verbose_, "Logs more");
  verbose->excludes("--quiet");
  for (const auto& command : commands()) add(*root_, command);
  root_->footer(exit_code_lines());
}

void CommandLine::add(CLI::App& parent, const Command& command) {
  auto* app = parent.add_subcommand(command.name, command.summary);
  app->group(command.group.empty() ? "Commands" : command.group);
  app->footer(command.details);
  app->require_subcommand(0, 1);
  for (const auto& subcommand : command.subcommands) add(*app, subcommand);
  if (!command.prepare) return;
  app->callback([this, action = command.prepare(*app)] { action_ = action; });
  name_hidden_options(*app);
}

Voice voice_in(const base::Environment& environment, Variables variables) {
  const auto identity = runtime::identify(environment);
  const auto rank = identity.ok() ? identity->announced_rank : std::nullopt;
  if (rank.value_or(0) == 0 || variables == Variables::inherited) return Voice::speaks;
  const auto share = runtime::announced_share(environment);
  return share && share->local_rank > 0 ? Voice::silent : Voice::speaks_late;
}

ExitCode guarded(const std::function<ExitCode()>& body, Voice voice) {
  try {
    return body();
  } catch (const ReaderGone&) {
    return ExitCode::done;
  } catch (const base::Error& error) {
    const bool alike = error.code() == ExitCode::usage || error.code() == ExitCode::launch ||
                       error.code() == ExitCode::checkpoint;
    complain(error.what(), alike ? voice : Voice::speaks);
    return error.code();
  } catch (const std::filesystem::filesystem_error& error) {
    const auto failure = base::failure_of(error);
    complain(failure.text, voice);
    return failure.code;
  } catch (const std::bad_alloc&) {
    complain("out of memory (this rank asked for more than the machine gives); see trireme plan");
    return ExitCode::topology;
  } catch (const std::exception& error) {
    complain(format("{} (this is a defect of Trireme; please report it)", error.what()));
    return ExitCode::internal;
  } catch (...) {
    complain("something unknown was thrown (this is a defect of Trireme; please report it)");
    return ExitCode::internal;
  }
}

ExitCode run(const std::vector<std::string>& arguments, const base::Environment& environment) {
  const auto identity = runtime::identify(environment);
  const auto voice_if = [&](bool inherited) {
    return voice_in(environment, inherited ? Variables::inherited : Variables::own);
  };
  const Voices voices{.error = voice_if(identity.ok() && runtime::is_inherited(*identity)),
                      .answer = voice_if(identity.ok() && runtime::may_be_inherited(*identity))};
  store::use_environment(environment);
  return guarded(
      [&] {
        Output out(STDOUT_FILENO);
        Context context{.environment = environment, .arguments = arguments, .out = out};
        const auto code = parse_and_run(arguments, context, voices);
        out.flush();
        return code;
      },
      voices.error);
}

}  // namespace trireme::apps
