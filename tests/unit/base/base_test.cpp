// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/environment.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/base/suggest.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cmath>
#include <filesystem>

using namespace trireme::base;

namespace {

int closed_count = 0;
struct CountingTraits {
  using raw_type = int;
  static int null() { return 0; }
  static const char* name() { return "counted"; }
  static std::optional<std::string> close(int raw) {
    ++closed_count;
    if (raw < 0) return "negative";
    return std::nullopt;
  }
};
using Counting = UniqueHandle<CountingTraits>;

}  // namespace

TEST_CASE("philox gives the published vectors") {
  // Known answers of the Random123 distribution (kat_vectors, philox4x32 10 rounds).
  CHECK(philox(0, 0, 0) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ULL, ~0ULL, ~0ULL) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("normal numbers have mean zero and variance one") {
  double sum = 0;
  double squares = 0;
  constexpr int count = 100'000;
  for (std::uint64_t index = 0; index < count; ++index) {
    const double value = philox_normal(7, stream_of("w"), index);
    sum += value;
    squares += value * value;
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(std::abs(squares / count - 1.0) < 0.02);
}

TEST_CASE("number text reads back as the same float") {
  for (const float value : {0.1F, 1e-30F, 123456.789F, 2.0F / 3.0F}) {
    CHECK(std::stof(number_text(value)) == value);
  }
}

TEST_CASE("a handle closes once, moves to null and reports a failing close") {
  closed_count = 0;
  {
    auto first = Counting::adopt(3);
    Counting second = std::move(first);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): this is the promise under test
    CHECK(second.get() == 3);
  }
  CHECK(closed_count == 1);
  auto failing = Counting::adopt(-1);
  const auto status = failing.close();
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().text == "counted: negative");
  CHECK(failing.close().ok());
}

TEST_CASE("a misspelt word finds its neighbour and a strange one does not") {
  const std::vector<std::string> words{"tensor", "pipeline", "data"};
  CHECK(nearest_word("tenosr", words) == "tensor");
  CHECK(nearest_word("xyzzyplugh", words) == std::nullopt);
  CHECK(divisors(12) == std::vector<int>{1, 2, 3, 4, 6, 12});
}

TEST_CASE("broken JSON names its source and deep JSON is refused before parsing") {
  const auto broken = parse_json("{\"a\": }", "here.json");
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.failure().text.find("here.json") == 0);
  CHECK_FALSE(parse_json(std::string(100'000, '['), "deep").ok());
}

TEST_CASE("JSON keeps the order of its keys, takes all kinds of values and refuses repeated keys") {
  const std::string text = R"({"b":[1,-2,0.5,"x",null,true,{"c":{}}],"a":[]})";
  CHECK(parse_json(text, "here").value().dump() == text);
  CHECK(parse_json("7", "here").value() == 7);
  CHECK_FALSE(parse_json("", "here").ok());
  CHECK_FALSE(parse_json("[1] 2", "here").ok());
  const auto repeated = parse_json(R"({"a":1,"b":{"c":1,"c":2}})", "here");
  REQUIRE_FALSE(repeated.ok());
  CHECK(repeated.failure().text == "here: the key 'c' stands twice in one object");
}

TEST_CASE("a broken contract is an internal error that names the condition") {
  try {
    TRIREME_EXPECT(1 == 2, "numbers differ");
    FAIL("not reached");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::internal);
    CHECK(std::string(error.what()).find("1 == 2") != std::string::npos);
  }
}

TEST_CASE("the environment is a value") {
  const char* entries[] = {"A=1", "B=x=y", "broken", nullptr};
  const auto environment = Environment::capture(entries);
  CHECK(environment.get("A") == "1");
  CHECK(environment.get("B") == "x=y");
  CHECK_FALSE(environment.has("broken"));
}
