// SPDX-License-Identifier: Apache-2.0
// The completion scripts of zsh and fish, asked through the shells themselves.
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using namespace trireme::tests;

namespace {

/// A line that has one completion: its last word, and what that becomes.
struct Line {
  std::string begin;
  std::string word;
  std::string completed;
};

const std::vector<Line>& lines() {
  static const std::vector<Line> all{
      {"trireme ", "conf", "config"},
      {"trireme config ", "sh", "show"},
      {"trireme -q config ", "sh", "show"},
      {"trireme config show ", "--or", "--origin"},
      {"trireme config show ", "--qu", "--quiet"},
      {"trireme config show --set ", "train.ste", "train.steps="},
      {"trireme config show --set ", "parallel.schedule=g", "parallel.schedule=gpipe"},
      {"trireme config show --set ", "parallel.sequence=t", "parallel.sequence=true"},
      {"trireme layout --schedule ", "g", "gpipe"},
      {"trireme layout ", "--tens", "--tensor-parallel"},
      {"trireme ownership --assignment ", "c", "contiguous"},
      {"trireme tokenizer train --pre-tokenizer ", "q", "qwen2"},
      {"trireme completion ", "f", "fish"},
      {"trireme man ", "spank", "spank_trireme"},
  };
  return all;
}

std::string script_of(const std::string& shell) {
  const auto made = run_trireme({"completion", shell});
  REQUIRE(made.exit_code == 0);
  return made.out;
}

ProgramEnd in_shell(const TemporaryFolder& folder, const char* program,
                    std::vector<std::string> arguments) {
  return run_program({.program = program,
                      .arguments = std::move(arguments),
                      .environment = {{"PATH", "/usr/bin:/bin"},
                                      {"TERM", "dumb"},
                                      {"LC_ALL", "C.UTF-8"},
                                      {"HOME", folder.path().string()}}});
}

}  // namespace

TEST_CASE("zsh completes commands, options, keys and values") {
  if (std::string_view(TRIREME_ZSH).empty()) {
    WARN("TRIREME_SKIP: zsh was not found when this was configured");
    return;
  }
  const TemporaryFolder folder;
  folder.write("_trireme", script_of("zsh"));
  std::vector<std::string> arguments{TRIREME_SOURCE_DIR "/tests/unit/apps/complete.zsh",
                                     folder.path().string()};
  for (const auto& line : lines()) arguments.push_back(line.begin + line.word);
  const auto end = in_shell(folder, TRIREME_ZSH, arguments);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  std::istringstream answers(end.out);
  for (const auto& line : lines()) {
    std::string answer;
    REQUIRE(std::getline(answers, answer));
    // A word that is complete is followed by a blank, a key by its '='.
    while (answer.ends_with(' ')) answer.pop_back();
    CHECK(answer == line.begin + line.completed);
  }
}

TEST_CASE("fish offers commands, options, keys and values") {
  if (std::string_view(TRIREME_FISH).empty()) {
    WARN("TRIREME_SKIP: fish was not found when this was configured");
    return;
  }
  const TemporaryFolder folder;
  const auto script = folder.write("trireme.fish", script_of("fish"));
  for (const auto& line : lines()) {
    const auto end = in_shell(
        folder, TRIREME_FISH,
        {"--no-config", "-c",
         "source '" + script.string() + "'; complete -C '" + line.begin + line.word + "'"});
    INFO(line.begin << line.word);
    CHECK(end.err.empty());
    // Words stand before a tab and their description.
    CHECK(end.out.substr(0, end.out.find_first_of("\t\n")) == line.completed);
    CHECK(std::count(end.out.begin(), end.out.end(), '\n') == 1);
  }
}
