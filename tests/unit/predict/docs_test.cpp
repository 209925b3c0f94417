// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/predict/machine.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;

namespace {

std::filesystem::path page() {
  return std::filesystem::path(TRIREME_SOURCE_DIR) / "docs" / "plan.md";
}

/// The page with the table of keys as the code has it.
std::string regenerated_page() {
  const auto text = base::value_or_throw(base::read_text_file(page()));
  const std::string begin = "<!-- generated: machine keys -->\n";
  const auto at = text.find(begin);
  REQUIRE(at != std::string::npos);
  const auto from = at + begin.size();
  const auto to = text.find("<!-- end -->", from);
  REQUIRE(to != std::string::npos);
  return text.substr(0, from) + predict::machine_reference() + text.substr(to);
}

}  // namespace

TEST_CASE("the keys of machine files in docs/plan.md are those of the code") {
  INFO("run unit_predict \"[regenerate]\" and look at what changed");
  CHECK(base::value_or_throw(base::read_text_file(page())) == regenerated_page());
}

TEST_CASE("write the keys of machine files into docs/plan.md", "[.][regenerate]") {
  base::write_file_durably(page(), regenerated_page());
}
