// SPDX-License-Identifier: Apache-2.0
// The completion script and the manual page are read by the programs that they are made for.
#include "trireme/launch/options.hpp"
#include "trireme/launch/plugstack_arguments.hpp"
#include "trireme/launch/task_variables.hpp"
#include "trireme/schema/schema.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace trireme::tests;

namespace {

/// Completions that bash offers at the end of these words.
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
        "gpipe 1f1b interleaved zb-h1 zb-h2 zb-v auto\n");
  CHECK(completions(script, "trireme config show --set parallel.schedule = g") == "gpipe\n");
  CHECK(completions(script, "trireme config show --set parallel.schedule=g") ==
        "parallel.schedule=gpipe\n");
  CHECK(completions(script, "trireme config show --set parallel.sequence = ''") ==
        "true false auto\n");
  // Words that a plain option or an argument takes.
  CHECK(completions(script, "trireme layout --schedule ''") ==
        "gpipe 1f1b interleaved zb-h1 zb-h2 zb-v\n");
  CHECK(completions(script, "trireme ownership --assignment ''") ==
        "auto contiguous padded shared\n");
  CHECK(completions(script, "trireme topology --devices g") == "gpu\n");
  CHECK(completions(script, "trireme bench gemm --precision b") == "bf16 both\n");
  CHECK(completions(script, "trireme tokenizer train --pre-tokenizer q") == "qwen2\n");
  CHECK(completions(script, "trireme man spank") == "spank_trireme\n");
}

TEST_CASE("the manual page has every key and option, in macros that are known") {
  const auto end = run_trireme({"man"});
  REQUIRE(end.exit_code == 0);
  for (const auto& key : trireme::schema::keys()) {
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

TEST_CASE("the pages of the launch have every option, variable and argument") {
  const auto escaped = [](std::string_view text) {
    std::string page_text;
    for (const char letter : text) page_text += letter == '-' ? "\\-" : std::string(1, letter);
    return page_text;
  };
  for (const char* page : {"trireme-launch", "spank_trireme"}) {
    const auto end = run_trireme({"man", page});
    REQUIRE(end.exit_code == 0);
    for (const auto& option : trireme::launch::options()) {
      INFO(option.name);
      const auto title = "--" + std::string(option.name) + "=" + std::string(option.argument);
      CHECK(contains(end.out, "\n.B " + escaped(title) + "\n"));
      CHECK(contains(end.out, "\nVariable " + std::string(option.variable)));
      CHECK(contains(end.out, escaped(trireme::launch::permitted_text(option))));
    }
  }
  const auto launch_page = run_trireme({"man", "trireme-launch"}).out;
  for (const auto& each : trireme::launch::task_variables()) {
    CHECK(contains(launch_page, "\n.B " + std::string(each.variable) + "\n"));
  }
  const auto plugin_page = run_trireme({"man", "spank_trireme"}).out;
  for (const auto& argument : trireme::launch::plugstack_arguments()) {
    CHECK(contains(plugin_page, "\n.B " + trireme::launch::permitted_text(argument) + "\n"));
  }
}

TEST_CASE("man formats the manual pages without a warning") {
  if (std::string_view(TRIREME_MAN).empty()) {
    WARN("TRIREME_SKIP: man was not found when this was configured");
    return;
  }
  const TemporaryFolder folder;
  const auto formatted = [&](const std::string& name) {
    const auto page = folder.write(name + ".roff", run_trireme({"man", name}).out);
    const auto end = run_program({.program = TRIREME_MAN,
                                  .arguments = {"--warnings", "-l", page.string()},
                                  .environment = {{"PATH", "/usr/bin:/bin"},
                                                  {"LC_ALL", "C.UTF-8"},
                                                  {"MANWIDTH", "80"},
                                                  {"HOME", folder.path().string()}}});
    INFO(name);
    CHECK(end.exit_code == 0);
    CHECK(end.err.empty());
    return end.out;
  };
  const auto first = formatted("trireme");
  CHECK(contains(first, "EXIT STATUS"));
  CHECK(contains(first, "train.steps"));
  CHECK(contains(formatted("trireme-launch"), "--tensor-parallel=N"));
  CHECK(contains(formatted("spank_trireme"), "memlock=unlimited|keep|none"));
  CHECK(run_trireme({"man", "other"}).exit_code == 2);
}
