// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/generate.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using inference::parse_prompts;

TEST_CASE("prompts are lines, whatever ends these, or a JSON list") {
  using Texts = std::vector<std::string>;
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(parse_prompts("sum\nof\n", "f").value() == Texts{"sum", "of"});
  CHECK(parse_prompts(mark + "sum\r\n\r\nof\r\n", "f").value() == Texts{"sum", "of"});
  CHECK(parse_prompts("a\rb\r\r\nlast", "f").value() == Texts{"a\rb\r", "last"});
  CHECK(parse_prompts(mark + "[\"a\\nb\",\r\n \"c\"]\r\n", "f").value() == Texts{"a\nb", "c"});
  CHECK(parse_prompts("\n[INST] a", "f").value() == Texts{"[INST] a"});
  // Their bytes stay: the tokenizer is what reads them.
  const std::string bytes("a\xe9\0b", 4);
  CHECK(parse_prompts(bytes + "\n" + mark, "f").value() == Texts{bytes, mark});
  CHECK(parse_prompts(mark, "f").value().empty());
}

TEST_CASE("a list of prompts that is none is told in our words") {
  for (const auto* text :
       {"[\"a\", ", "[INST] a", "[\"a\"] b", "[\"\xe9\"]", "[\"\\ud800\"]", "[NaN]"}) {
    CAPTURE(text);
    const auto prompts = parse_prompts(text, "f.json");
    REQUIRE_FALSE(prompts.ok());
    CHECK(prompts.failure().code == base::ExitCode::usage);
    CHECK_THAT(prompts.failure().text, Catch::Contains("'f.json' begins with '['") &&
                                           Catch::Contains("not valid JSON at line 1, column ") &&
                                           !Catch::Contains("json.exception"));
  }
  CHECK_THAT(parse_prompts("[\"a\", 7]", "f.json").failure().text,
             Catch::Contains("not of texts alone (entry 2"));
}
