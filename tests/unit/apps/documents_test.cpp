// The completion script and the manual page are read by the programs that they are made for.
#include "trireme/config/schema.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace trireme::tests;

namespace {

/// What bash offers at the end of these words.
std::string completions(const std::filesystem::path& script, const std::string& words) {
  const std::string program =
      "source '" + script.string() + "'; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _trireme; echo \"${COMPREPLY[*]}\"";
  const auto end = run_program({.program = TRIREME_BASH, .arguments = {"-c", program}});
  CHECK(end.err.empty());
  return end.out;
}

}  // namespace

TEST_CASE("the completion script completes commands, options, keys and values") {
  if (std::string_view(TRIREME_BASH).empty()) {
    WARN("TRIREME_SKIP: bash was not found when this was configured");
    return;
  }
  const TemporaryFolder folder;
  const auto made = run_trireme({"completion", "bash"});
  REQUIRE(made.exit_code == 0);
  const auto script = folder.write("trireme.bash", made.out);
  const auto syntax = run_program({.program = TRIREME_BASH, .arguments = {"-n", script.string()}});
  CHECK(syntax.exit_code == 0);
  CHECK(syntax.err.empty());

  CHECK(contains(completions(script, "trireme ''"), "config"));
  CHECK(completions(script, "trireme conf") == "config\n");
  CHECK(completions(script, "trireme config sh") == "show\n");
  CHECK(completions(script, "trireme -q config sh") == "show\n");
  CHECK(completions(script, "trireme config show --or") == "--origin\n");
  CHECK(completions(script, "trireme config show --qu") == "--quiet\n");
  CHECK(completions(script, "trireme config show file") == "\n");
  CHECK(completions(script, "trireme config show --set train.ste") == "train.steps=\n");
  CHECK(completions(script, "trireme config show --set parallel.schedule =") ==
        "gpipe 1f1b interleaved\n");
  CHECK(completions(script, "trireme config show --set parallel.schedule = g") == "gpipe\n");
  CHECK(completions(script, "trireme config show --set parallel.schedule=g") ==
        "parallel.schedule=gpipe\n");
  CHECK(completions(script, "trireme config show --set parallel.sequence = ''") == "true false\n");
}

TEST_CASE("the manual page has every key and option, in macros that are known") {
  const auto end = run_trireme({"man"});
  REQUIRE(end.exit_code == 0);
  for (const auto& key : trireme::config::schema()) {
    INFO(key.full_name());
    CHECK(contains(end.out, "\n.B " + key.full_name() + "\n"));
  }
  CHECK(contains(end.out, "\n.B \\-\\-origin\n"));
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('.')) continue;
    const auto macro = line.substr(0, line.find(' '));
    INFO(line);
    CHECK((macro == ".TH" || macro == ".SH" || macro == ".SS" || macro == ".TP" || macro == ".B" ||
           macro == ".PP" || macro == ".br"));
  }
}

TEST_CASE("man formats the manual page without a warning") {
  if (std::string_view(TRIREME_MAN).empty()) {
    WARN("TRIREME_SKIP: man was not found when this was configured");
    return;
  }
  const TemporaryFolder folder;
  const auto page = folder.write("trireme.1", run_trireme({"man"}).out);
  const auto end = run_program({.program = TRIREME_MAN,
                                .arguments = {"--warnings", "-l", page.string()},
                                .environment = {{"PATH", "/usr/bin:/bin"},
                                                {"LC_ALL", "C.UTF-8"},
                                                {"MANWIDTH", "80"},
                                                {"HOME", folder.path().string()}}});
  CHECK(end.exit_code == 0);
  CHECK(end.err.empty());
  CHECK(contains(end.out, "EXIT STATUS"));
  CHECK(contains(end.out, "train.steps"));
}
