#include "trireme/base/error.hpp"

#include "apps/cli_tree.hpp"
#include "apps/program.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
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
                    "trireme: PAGE: config not in {trireme,trireme-launch,spank_trireme}\n"
                    "trireme: see: trireme man --help\n");
  check_usage_error({"config", "diff", "a"},
                    "trireme: B is required\n"
                    "trireme: see: trireme config diff --help\n");
  check_usage_error({"completion", "zsh"},
                    "trireme: SHELL: zsh not in {bash}\n"
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
    return apps::voice_in(base::Environment({{"OMPI_COMM_WORLD_SIZE", "8"},
                                             {"OMPI_COMM_WORLD_RANK", rank},
                                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                             {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank}}));
  };
  CHECK(apps::voice_in({}) == Voice::speaks);
  CHECK(voice("0", "0") == Voice::speaks);
  CHECK(voice("1", "1") == Voice::silent);
  CHECK(voice("4", "0") == Voice::speaks_late);
}

TEST_CASE("every rank but the first says nothing of a command line that none can use") {
  const auto run_as = [](const char* rank, std::vector<std::string> arguments) {
    auto start = trireme_start(std::move(arguments));
    start.environment = {{"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_RANK", rank},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", rank}};
    return run_program(start);
  };
  const auto first = run_as("0", {"train", "--nonsense"});
  const auto second = run_as("1", {"train", "--nonsense"});
  CHECK(first.exit_code == 2);
  CHECK(first.err.find("nonsense") != std::string::npos);
  CHECK(second.exit_code == 2);
  CHECK(second.err.empty());
  CHECK(run_as("1", {"train", "--set", "train.stesp=5"}).err.empty());
  CHECK(run_as("1", {"--help"}).out.empty());
  CHECK_FALSE(run_as("0", {"--help"}).out.empty());
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
  CHECK(apps::guarded([]() -> ExitCode { throw 5; }) == ExitCode::internal);
}
