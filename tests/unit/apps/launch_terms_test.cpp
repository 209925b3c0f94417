#include "trireme/config/schema.hpp"
#include "trireme/config/value.hpp"
#include "trireme/launch/terms.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace trireme;

TEST_CASE("what an option of the launch takes, the key that it sets takes too") {
  for (const auto& term : launch::terms()) {
    if (term.key.empty()) continue;
    CAPTURE(term.option, term.key);
    const auto* const key = config::find_key(term.key);
    REQUIRE(key != nullptr);
    const auto takes = [&](const std::string& text) {
      return bool{config::parse_value(*key, text)};
    };
    for (const auto word : term.words) CHECK(takes(std::string(word)));
    if (!term.is_number()) continue;
    CHECK(takes(std::to_string(term.minimum)));
    CHECK(takes(std::to_string(term.maximum)));
    // Nor is the option narrower at its lower end.
    CHECK_FALSE(takes(std::to_string(term.minimum - 1)));
  }
}
