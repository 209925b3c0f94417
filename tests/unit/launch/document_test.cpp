// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/plugstack_arguments.hpp"
#include "trireme/launch/task_variables.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace trireme;

namespace {

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char letter : text) escaped += letter == '|' ? "\\|" : std::string(1, letter);
  return escaped;
}

std::string table() {
  std::string text = "| option | variable | value | key | meaning |\n|---|---|---|---|---|\n";
  for (const auto& option : launch::options()) {
    text += base::format("| `--{}={}` | `{}` | {} | {} | {} |\n", option.name,
                         cell(option.argument), option.variable, launch::permitted_text(option),
                         option.key.empty() ? "–" : base::format("`{}`", option.key),
                         cell(option.usage));
  }
  return text;
}

}  // namespace

TEST_CASE("docs/launch-contract.md has the table of the code") {
  const auto page = base::read_text_file(TRIREME_SOURCE_DIR "/docs/launch-contract.md");
  REQUIRE(page.ok());
  const auto begin = page->find("| option | variable |");
  REQUIRE(begin != std::string::npos);
  CHECK(page->substr(begin, page->find("\n\n", begin) + 1 - begin) == table());
}

TEST_CASE("docs/launch-contract.md says what is handed on as the code does") {
  const auto page = base::read_text_file(TRIREME_SOURCE_DIR "/docs/launch-contract.md");
  REQUIRE(page.ok());
  std::string expected = "| variable | set by | says |\n|---|---|---|\n";
  for (const auto& each : launch::task_variables()) {
    expected += base::format("| `{}` | {} | {} |\n", each.variable, each.set_by, each.says);
  }
  const auto begin = page->find("| variable | set by | says |");
  REQUIRE(begin != std::string::npos);
  CHECK(page->substr(begin, page->find("\n\n", begin) + 1 - begin) == expected);
}

TEST_CASE("docs/install-slurm.md has the arguments of plugstack.conf that the code reads") {
  const auto page = base::read_text_file(TRIREME_SOURCE_DIR "/docs/install-slurm.md");
  REQUIRE(page.ok());
  std::string expected = "| argument | default | meaning |\n|---|---|---|\n";
  for (const auto& argument : launch::plugstack_arguments()) {
    expected += base::format("| `{}` | `{}` | {} |\n", cell(launch::permitted_text(argument)),
                             argument.standard, argument.meaning);
  }
  const auto begin = page->find("| argument | default | meaning |");
  REQUIRE(begin != std::string::npos);
  CHECK(page->substr(begin, page->find("\n\n", begin) + 1 - begin) == expected);
}

TEST_CASE("arguments of plugstack.conf are known words or paths from the root") {
  CHECK(launch::is_plugstack_argument("base=/run/trireme-%h"));
  CHECK(launch::is_plugstack_argument("memlock=none"));
  CHECK(launch::is_plugstack_argument("core=keep"));
  for (const char* wrong : {"", "=", "base", "base=", "base=run", "memlock=", "memlock=Unlimited",
                            "core=keep ", "core", "cores=keep", "=keep"}) {
    INFO(wrong);
    CHECK_FALSE(launch::is_plugstack_argument(wrong));
  }
}
