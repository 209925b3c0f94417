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
  const std::string bytes = "a\xe9\x01z";
  CHECK(parse_prompts(bytes + "\n" + mark, "f").value() == Texts{bytes, mark});
  CHECK(parse_prompts(mark, "f").value().empty());
}

TEST_CASE("a file of prompts that is no text is refused, whatever its first line") {
  const auto refused = [](const std::string& text) {
    const auto prompts = parse_prompts(text, "f.txt");
    REQUIRE_FALSE(prompts.ok());
    CHECK(prompts.failure().code == base::ExitCode::usage);
    return prompts.failure().text;
  };
  const std::string wide("s\0u\0m\0\n\0o\0f\0", 12);
  CHECK(refused("\xFF\xFE" + wide) ==
        "'f.txt' is UTF-16 (prompts are text in UTF-8); convert it: iconv -f UTF-16 -t UTF-8");
  CHECK_THAT(refused("\xFE\xFF" + wide), Catch::Contains("is UTF-16 ("));
  CHECK_THAT(refused(wide), Catch::Contains("'f.txt' has a NUL at byte 1 ("));
  CHECK_THAT(refused("sum\n" + wide), Catch::Contains("has a NUL at byte 5 ("));
  CHECK_THAT(refused("[\"" + wide), Catch::Contains("has a NUL at byte 3 ("));
  CHECK(parse_prompts("[\"a\\u0000\"]", "f").value() ==
        std::vector<std::string>{std::string("a\0", 2)});
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
