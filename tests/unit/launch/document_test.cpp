#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"

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
  for (const auto& term : launch::terms()) {
    text += base::format("| `--{}={}` | `{}` | {} | {} | {} |\n", term.option, cell(term.argument),
                         term.variable, launch::permitted_text(term),
                         term.key.empty() ? "–" : base::format("`{}`", term.key), cell(term.usage));
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
  for (const auto variable :
       {launch::carrier_variable, launch::node_variable, launch::version_variable,
        launch::directory_variable, launch::record_variable}) {
    CHECK(page->find(base::format("| `{}` |", variable)) != std::string::npos);
  }
}
