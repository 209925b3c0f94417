// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/options.hpp"

#include "trireme/schema/schema.hpp"
#include "trireme/schema/value.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace trireme;
using launch::find_option;
using launch::parse_value;

namespace {

std::string refusal(const char* option, std::string_view text) {
  const auto value = parse_value(*find_option(option), text, std::string("--") + option);
  return value.ok() ? "accepted as " + *value : value.failure().text;
}

std::string accepted(const char* option, std::string_view text) {
  const auto value = parse_value(*find_option(option), text, option);
  return value.ok() ? *value : "refused: " + value.failure().text;
}

}  // namespace

TEST_CASE("every option has a name, a variable and a help text of its own") {
  std::set<std::string_view> options;
  std::set<std::string_view> variables;
  for (const auto& option : launch::options()) {
    CHECK(options.insert(option.name).second);
    CHECK(variables.insert(option.variable).second);
    CHECK(option.variable.starts_with("TRIREME_"));
    // Two underscores would make it a key of the configuration's own variables.
    CHECK(option.variable.find("__") == std::string_view::npos);
    CHECK_FALSE(option.usage.empty());
    CHECK_FALSE(option.argument.empty());
    CHECK(launch::find_option(option.name) == &option);
  }
  CHECK(launch::find_option("tensor") == nullptr);
}

TEST_CASE("what an option takes, the key that it sets takes too, and nothing beyond") {
  for (const auto& option : launch::options()) {
    if (option.key.empty()) continue;
    CAPTURE(option.name, option.key);
    const auto* const key = schema::find_key(option.key);
    REQUIRE(key != nullptr);
    const auto key_takes = [&](const std::string& text) {
      return schema::parse_value(*key, text).ok();
    };
    const auto option_takes = [&](const std::string& text) {
      return parse_value(option, text, "here").ok();
    };
    for (const std::string text : {"auto", "none", "topology", "slurm", "0", "1", "2", "3", "-1",
                                   "1048577", "2147483647", "2147483648", "nothing"}) {
      // An option is read as an int.
      const bool fits = text != "2147483648";
      CAPTURE(text);
      CHECK(option_takes(text) == (fits && key_takes(text)));
    }
    for (const auto word : option.words) CHECK(key_takes(std::string(word)));
  }
}

TEST_CASE("values are read strictly and written one way") {
  CHECK(accepted("tensor-parallel", "8") == "8");
  CHECK(accepted("tensor-parallel", " 008 ") == "8");
  CHECK(accepted("data-parallel", "auto") == "auto");
  CHECK(accepted("zero-level", "0") == "0");
  CHECK(accepted("trireme-signal-lead", "0") == "0");
  CHECK(accepted("trireme-set", " train.steps = 100 ") == "train.steps=100");
  CHECK(accepted("trireme-set", "data.train=a:0.5, b=c") == "data.train=a:0.5, b=c");
  CHECK(accepted("trireme-set", "run.tags=") == "run.tags=");
}

TEST_CASE("refusals name the value, the rule and the nearest choices") {
  CHECK(refusal("zero-level", "4") ==
        "--zero-level = 4 is not a number from 0 to 3 or auto (what replicas divide among "
        "themselves); try auto, 0, 1, 2, 3");
  CHECK(
      refusal("trireme-order", "toplogy") ==
      "--trireme-order = toplogy is not auto or topology or slurm (order of ranks: by the network, "
      "or as Slurm numbers tasks); did you mean topology?");
  CHECK(
      refusal("tensor-parallel", "99999999999999999999") ==
      "--tensor-parallel = 99999999999999999999 is not a number of at least 1 or auto (ranks that "
      "share every matrix, inside a node); try auto, 1, 2");
  CHECK(refusal("trireme-set", "steps=3").find("is not section.key=value") != std::string::npos);
}

TEST_CASE("no junk becomes a value") {
  for (const char* text : {"", " ", "0", "-1", "+2", "2.0", "0x2", "2 2", "2a", "aut", "\n", "²",
                           "4294967298", "2147483648"}) {
    CAPTURE(text);
    CHECK(refusal("tensor-parallel", text).find("accepted") == std::string::npos);
  }
  for (const char* text : {"", "a", "a.b", ".b=1", "a.=1", "=1", "A.b=1", "a b.c=1", "a.b=1\n2"}) {
    CAPTURE(text);
    CHECK(refusal("trireme-set", text).find("accepted") == std::string::npos);
  }
  CHECK(refusal("trireme-set", "a.b=" + std::string(5000, 'x')).find("at most 4096") !=
        std::string::npos);
  CHECK(refusal("trireme", "yes").find("did you mean") == std::string::npos);
  CHECK(refusal("tensor-parallel", std::string("2\0", 2)).find("control character") !=
        std::string::npos);
}
