// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"

#include "apps/cli/cli_tree.hpp"
#include "apps/program.hpp"
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <new>

using namespace trireme::tests;
namespace apps = trireme::apps;
namespace base = trireme::base;

namespace {

void check_usage_error(std::vector<std::string> arguments, const std::string& text) {
  const auto end = run_trireme(std::move(arguments));
  CHECK(end.exit_code == 2);
  CHECK(end.out.empty());
  CHECK(end.err == text);
}

void for_each_command(const apps::CommandText& command,
                      const std::function<void(const apps::CommandText&)>& visit) {
  visit(command);
  for (const auto& subcommand : command.subcommands) for_each_command(subcommand, visit);
}

std::vector<std::string> words(const std::string& path) {
  std::istringstream stream(path);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

}  // namespace

TEST_CASE("without arguments the program prints its help") {
  const auto end = run_trireme({});
  CHECK(end.exit_code == 0);
  CHECK(end.err.empty());
  CHECK(end.out == run_trireme({"--help"}).out);
  CHECK(end.out == run_trireme({"-h"}).out);
  CHECK(end.out.starts_with("usage: trireme COMMAND [OPTION...]\n"));
  CHECK(contains(end.out, "\nConfiguration:\n  config "));
  CHECK(contains(end.out, "\n  75  stopped in good order"));
}

TEST_CASE("every command has help that says how it is used and fits 100 columns") {
  const apps::CommandLine line;
  for_each_command(apps::describe(line.root()), [](const apps::CommandText& command) {
    INFO(command.path);
    CHECK_FALSE(command.summary.empty());
    CHECK_FALSE(command.summary.ends_with('.'));
    auto arguments = words(command.path);
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
    const auto end = run_trireme(arguments);
    CHECK(end.exit_code == 0);
    CHECK(end.out.starts_with("usage: " + command.path));
    CHECK(contains(end.out, "-h, --help"));
    CHECK(contains(end.out, "--quiet"));
    std::istringstream lines(end.out);
    for (std::string each; std::getline(lines, each);) CHECK(each.size() <= 100);
    // Words of CLI11 on types and rules.
    for (const auto* leak :
         {"INT", "FLOAT", ":value in", "->0", "[[", "]]", "NONNEGATIVE", "000 to"}) {
      INFO(leak);
      CHECK_FALSE(contains(end.out, leak));
    }
    for (const auto& option : command.options) {
      INFO(option.title);
      CHECK_FALSE(option.description.empty());
      CHECK_FALSE(option.names.empty());
    }
  });
}

TEST_CASE("the version names commit, compiler and the parts of the build") {
  const auto end = run_trireme({"--version"});
  CHECK(end.exit_code == 0);
  CHECK(end.out.starts_with("trireme 0.1.0 (commit "));
  CHECK(contains(end.out, "\n  Boost.Program_options 1."));
  CHECK(contains(end.out, "\n  CLI11"));
  CHECK(contains(end.out, "\n  C library             glibc 2."));
  // Present with a version or absent with a reason, never silent.
  std::string lower = end.out;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const auto* part : {"mpi", "cuda", "nccl", "ucx", "hdf5", "hwloc", "onednn", "slurm"}) {
    INFO(part);
    CHECK(contains(lower, std::string("\n  ") + part));
  }
}

TEST_CASE("misspelt commands and options are refused with a suggestion") {
  check_usage_error({"cofnig"},
                    "trireme: trireme has no command 'cofnig'; did you mean 'config'?\n"
                    "trireme: see: trireme --help\n");
  check_usage_error({"xyzzy"},
                    "trireme: trireme has no command 'xyzzy'\n"
                    "trireme: see: trireme --help\n");
  check_usage_error({"config", "shwo"},
                    "trireme: trireme config has no command 'shwo'; did you mean 'show'?\n"
                    "trireme: see: trireme config --help\n");
  check_usage_error({"config", "show", "--orign"},
                    "trireme: trireme config show has no option '--orign'; did you mean "
                    "'--origin'?\n"
                    "trireme: see: trireme config show --help\n");
  check_usage_error({"config", "show", "--qiet"},
                    "trireme: trireme config show has no option '--qiet'; did you mean "
                    "'--quiet'?\n"
                    "trireme: see: trireme config show --help\n");
  check_usage_error({"--vresion"},
                    "trireme: trireme has no option '--vresion'; did you mean '--version'?\n"
                    "trireme: see: trireme --help\n");
}

TEST_CASE("missing, surplus and wrong arguments are usage errors") {
  check_usage_error({"config"},
                    "trireme: trireme config needs one of its commands: show, check, reference, "
                    "diff\n"
                    "trireme: see: trireme config --help\n");
  check_usage_error({"config", "reference", "again"},
                    "trireme: trireme config reference does not take 'again' (usage: trireme "
                    "config reference [OPTION...])\n"
                    "trireme: see: trireme config reference --help\n");
  check_usage_error({"man", "config"},
                    "trireme: PAGE: 'config' is not one of trireme, trireme-launch, spank_trireme\n"
                    "trireme: see: trireme man --help\n");
  check_usage_error({"config", "diff", "a"},
                    "trireme: B is required\n"
                    "trireme: see: trireme config diff --help\n");
  check_usage_error({"completion", "csh"},
                    "trireme: SHELL: 'csh' is not one of bash, zsh, fish; did you mean 'zsh'?\n"
                    "trireme: see: trireme completion --help\n");
  check_usage_error({"config", "show", "--set"},
                    "trireme: --set: 1 required SECTION.KEY=VALUE missing\n"
                    "trireme: see: trireme config show --help\n");
  CHECK(run_trireme({"config", "show", "-q", "-v"}).exit_code == 2);
}

TEST_CASE("options that hold everywhere stand before or behind a command") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"-q", "config", "show"}, {"config", "-q", "show"}, {"config", "show", "-q"}}) {
    CHECK(run_trireme(arguments).exit_code == 0);
  }
}

TEST_CASE("output that cannot be written is an error, and a reader that left is none") {
  auto start = trireme_start({"config", "reference"});
  start.out_to = "/dev/full";
  auto end = run_program(start);
  CHECK(end.exit_code == 6);
  CHECK(end.err == "trireme: cannot write to standard output: No space left on device\n");
  start.out_to = "closed";
  end = run_program(start);
  CHECK(end.exit_code == 6);
  CHECK(end.err == "trireme: cannot write to standard output: Bad file descriptor\n");
  start.out_to = "unread";
  end = run_program(start);
  CHECK(end.exit_code == 0);
  CHECK(end.err.empty());
}

TEST_CASE(
    "of mistakes that all ranks make alike one rank speaks, and the first of each other node") {
  using apps::Voice;
  const auto voice = [](const char* rank, const char* local_rank) {
    const base::Environment environment({{"OMPI_COMM_WORLD_SIZE", "8"},
                                         {"OMPI_COMM_WORLD_RANK", rank},
                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                         {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank}});
    CHECK(apps::voice_in(environment, apps::Variables::inherited) == Voice::speaks);
    return apps::voice_in(environment, apps::Variables::own);
  };
  CHECK(apps::voice_in({}, apps::Variables::own) == Voice::speaks);
  CHECK(voice("0", "0") == Voice::speaks);
  CHECK(voice("1", "1") == Voice::silent);
  CHECK(voice("4", "0") == Voice::speaks_late);
}

TEST_CASE("whatever is thrown ends in the exit code that says whose fault it is") {
  using base::ExitCode;
  CHECK(apps::guarded([] { return ExitCode::requeue; }) == ExitCode::requeue);
  CHECK(apps::guarded([]() -> ExitCode { throw base::Error(ExitCode::peer, "test"); }) ==
        ExitCode::peer);
  CHECK(apps::guarded([]() -> ExitCode { throw apps::ReaderGone{}; }) == ExitCode::done);
  CHECK(apps::guarded([]() -> ExitCode { throw std::runtime_error("test"); }) ==
        ExitCode::internal);
  CHECK(apps::guarded([]() -> ExitCode { throw std::bad_alloc(); }) == ExitCode::topology);
  CHECK(apps::guarded([]() -> ExitCode {
          return std::filesystem::file_size(std::string(300, 'n')) > 0 ? ExitCode::done
                                                                       : ExitCode::usage;
        }) == ExitCode::checkpoint);
  CHECK(apps::guarded([]() -> ExitCode { throw 5; }) == ExitCode::internal);
}

TEST_CASE("an option before its command is told where it belongs") {
  check_usage_error({"--json", "config", "show"},
                    "trireme: '--json' is an option of trireme config show (it stands before its "
                    "command); write trireme config show --json\n"
                    "trireme: see: trireme config show --help\n");
  check_usage_error({"config", "--json", "show"},
                    "trireme: '--json' is an option of trireme config show (it stands before its "
                    "command); write trireme config show --json\n"
                    "trireme: see: trireme config show --help\n");
}

TEST_CASE("habits of other trainers are answered with the setting that is meant") {
  const auto advice = [](std::vector<std::string> arguments) {
    const auto end = run_trireme(std::move(arguments));
    CHECK(end.exit_code == 2);
    CHECK(end.out.empty());
    const auto write = end.err.find("; write ");
    INFO(end.err);
    REQUIRE(write != std::string::npos);
    return end.err.substr(write + 8, end.err.find('\n', write) - write - 8);
  };
  CHECK(advice({"train", "train.steps=5"}) == "--set train.steps=5");
  CHECK(advice({"train", "++train.steps=5"}) == "--set train.steps=5");
  CHECK(advice({"train", "a.conf", "train.stesp=5"}) == "--set train.steps=5");
  CHECK(advice({"train", "lr=1e-4"}) == "--set optimizer.learning_rate=1e-4");
  CHECK(advice({"train", "--train.steps=5"}) == "--set train.steps=5");
  CHECK(advice({"train", "--train.steps", "5"}) == "--set train.steps=5");
  CHECK(advice({"train", "--steps", "5"}) == "--set train.steps=5");
  CHECK(advice({"config", "show", "--micro-batch-size=4"}) == "--set train.micro_batch=4");
  CHECK(advice({"plan", "--ranks", "2", "--seed"}) ==
        "--set train.seed=VALUE or --set data.seed=VALUE");
  // A file of such a name is a file.
  const auto file = run_trireme({"config", "show", "nothing=here"});
  CHECK(contains(file.err, "cannot open 'nothing=here'"));
}

TEST_CASE("values that an option does not take are refused in words") {
  check_usage_error({"layout", "--ranks", "0"},
                    "trireme: --ranks: '0' is no whole number from 1 to 1048576\n"
                    "trireme: see: trireme layout --help\n");
  check_usage_error({"layout", "--ranks", "4", "--micro-batches", "4", "--schedule", "1f2b"},
                    "trireme: --schedule: '1f2b' is not one of gpipe, 1f1b, interleaved, zb-h1, "
                    "zb-h2, zb-v; did you "
                    "mean '1f1b'?\n"
                    "trireme: see: trireme layout --help\n");
  check_usage_error({"tokenizer", "train", "--input", "a", "--vocab-size", "300", "--out", "b",
                     "--pre-tokenizer", "gpt"},
                    "trireme: --pre-tokenizer: 'gpt' is not one of gpt2, llama3, qwen2; did you "
                    "mean 'gpt2'?\n"
                    "trireme: see: trireme tokenizer train --help\n");
  check_usage_error({"generate", "--weights", "x", "--temperature", "200"},
                    "trireme: --temperature: '200' is no number from 0 to 100\n"
                    "trireme: see: trireme generate --help\n");
}

namespace {

/// Trains a tokenizer that has too little text: there is progress to show, and a warning to log.
ProgramStart warning_start(const TemporaryFolder& folder) {
  const auto text = folder.write("text.txt", "one two three two three three");
  return trireme_start({"tokenizer", "train", "--input", text.string(), "--vocab-size", "2000",
                        "--out", (folder.path() / "tokenizer.json").string()});
}

}  // namespace

TEST_CASE("the log has colours on a terminal or when asked, and never against NO_COLOR") {
  const TemporaryFolder folder;
  const auto is_coloured = [&folder](ProgramStart::Err err_to,
                                     const std::map<std::string, std::string>& variables) {
    auto start = warning_start(folder);
    start.err_to = err_to;
    start.environment.insert(variables.begin(), variables.end());
    const auto end = run_program(start);
    CHECK(end.exit_code == 0);
    CHECK(contains(end.err, "no more pairs"));
    return contains(end.err, "\033[33m");
  };
  using Err = ProgramStart::Err;
  CHECK_FALSE(is_coloured(Err::pipe, {}));
  CHECK(is_coloured(Err::terminal, {}));
  CHECK_FALSE(is_coloured(Err::terminal, {{"TERM", "dumb"}}));
  CHECK_FALSE(is_coloured(Err::terminal, {{"NO_COLOR", "1"}}));
  // Ranks of mpirun write to a pipe whose other end is a terminal.
  CHECK(is_coloured(Err::pipe, {{"FORCE_COLOR", "1"}}));
  CHECK(is_coloured(Err::pipe, {{"CLICOLOR_FORCE", "1"}}));
  CHECK_FALSE(is_coloured(Err::pipe, {{"FORCE_COLOR", "0"}}));
  CHECK_FALSE(is_coloured(Err::pipe, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}));
}

// Work that takes long is drawn, and wiped before the log goes on: mpi.terminal.
TEST_CASE("work that is done at once draws no progress") {
  const TemporaryFolder folder;
  auto start = warning_start(folder);
  for (const auto err_to : {ProgramStart::Err::pipe, ProgramStart::Err::terminal}) {
    start.err_to = err_to;
    const auto end = run_program(start);
    INFO(end.err);
    CHECK(end.exit_code == 0);
    CHECK_FALSE(contains(end.err, "reading  "));
    CHECK(contains(end.err, "no more pairs"));
  }
}
