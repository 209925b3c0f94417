// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/value.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/schema/schema.hpp"

#include <catch2/catch.hpp>

#include <limits>

using namespace trireme::schema;
namespace base = trireme::base;

namespace {

const Key& key(std::string_view name) {
  const auto* found = find_key(name);
  REQUIRE(found != nullptr);
  return *found;
}

std::string failure(std::string_view name, std::string_view text) {
  const auto value = parse_value(key(name), text);
  REQUIRE_FALSE(value.ok());
  return value.failure().text;
}

template <typename T>
T parsed(std::string_view name, std::string_view text) {
  const auto value = parse_value(key(name), text);
  INFO(name << " = " << text);
  REQUIRE(value.ok());
  return std::get<T>(*value);
}

}  // namespace

TEST_CASE("sizes are numbers with a unit of 1000s or of 1024s") {
  CHECK(parse_bytes("4096").value() == 4096);
  CHECK(parse_bytes("0").value() == 0);
  CHECK(parse_bytes("25MB").value() == 25'000'000);
  CHECK(parse_bytes("25 mb").value() == 25'000'000);
  CHECK(parse_bytes("16GiB").value() == std::int64_t{16} << 30);
  CHECK(parse_bytes("1.5GiB").value() == std::int64_t{3} << 29);
  CHECK(parse_bytes("0.5kB").value() == 500);
  CHECK(parse_bytes("7 B").value() == 7);
  CHECK(parse_bytes("8191PiB").value() == std::int64_t{8191} << 50);
}

TEST_CASE("sizes that are junk, too large, ambiguous or not whole are refused") {
  for (const auto* text : {"", "MB", "-1", "+1", "1e3", "0x10", "1..5MB", ".", "1 M B", "5 bytes",
                           "nan", "inf", "1,5GiB", "16GiB extra"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text).ok());
  }
  for (const auto* text : {"8192PiB", "9223372036854775808", "99999999999999999999999PiB",
                           "9000.5PiB", "18446744073709551616"}) {
    INFO(text);
    REQUIRE_FALSE(parse_bytes(text).ok());
    CHECK(parse_bytes(text).failure().text == "sizes end at 8191PiB");
  }
  CHECK(parse_bytes("16G").failure().text ==
        "G may be a power of 1000 or of 1024: write 16GB or 16GiB");
  CHECK(parse_bytes("4k").failure().text ==
        "k may be a power of 1000 or of 1024: write 4kB or 4KiB");
  CHECK(parse_bytes("0.5B").failure().text ==
        "it is not a whole number of bytes; use a smaller unit");
}

TEST_CASE("times are numbers with units, largest first") {
  CHECK(parse_seconds("90").value() == 90);
  CHECK(parse_seconds("90s").value() == 90);
  CHECK(parse_seconds("2h").value() == 7200);
  CHECK(parse_seconds("1h30m").value() == 5400);
  CHECK(parse_seconds("1h30min").value() == 5400);
  CHECK(parse_seconds("1h 30min 5s").value() == 5405);
  CHECK(parse_seconds("1500ms").value() == 1.5);
  CHECK(parse_seconds("1.5d").value() == 129600);
  CHECK(parse_seconds("0.1").value() == 0.1);
}

TEST_CASE("times that are junk, too long or out of order are refused") {
  for (const auto* text : {"", "h", "1x", "1h2", "30m1h", "1h1h", "1m1min", "-1s", "1e3s", "inf",
                           "nan", "1h30", "s5", "1hour", "1 2"}) {
    INFO(text);
    CHECK_FALSE(parse_seconds(text).ok());
  }
  CHECK(parse_seconds("3653d").failure().text == "times end at 10 years");
  CHECK(parse_seconds("99999999999999999999999999h").failure().text == "times end at 10 years");
  CHECK_FALSE(parse_seconds(std::string(400, '9')).ok());
}

TEST_CASE("whole numbers are read exactly and out of range is refused") {
  CHECK(parsed<std::int64_t>("train.steps", " +7 ") == 7);
  CHECK(parsed<std::int64_t>("train.seed", "9223372036854775807") ==
        std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(parse_value(key("train.seed"), "9223372036854775808").ok());
  CHECK_FALSE(parse_value(key("train.seed"), "-1").ok());
  CHECK(failure("train.steps", "1e4") ==
        "train.steps = 1e4 is not a whole number (optimizer updates of the whole run); write "
        "10000");
  CHECK(failure("train.steps", "3000000000") ==
        "train.steps = 3000000000 is too large (optimizer updates of the whole run); give 1 to "
        "2147483647");
  // Turns are numbers below it, multiplied by numbers of matrices.
  CHECK_FALSE(parse_value(key("optimizer.root_every"), "2147483648").ok());
  for (const auto* text : {"", "1.5", "0x10", "1 2", "--1", "+-1", "1_000", "\xD9\xA3"}) {
    INFO(text);
    CHECK_FALSE(parse_value(key("train.steps"), text).ok());
  }
}

TEST_CASE("numbers are finite decimals within their range") {
  CHECK(parsed<double>("optimizer.learning_rate", "3e-4") == 3e-4);
  CHECK(parsed<double>("optimizer.learning_rate", ".5") == 0.5);
  for (const auto* text : {"nan", "inf", "-inf", "1e999", "0x1p3", "1,5", "one"}) {
    INFO(text);
    CHECK_FALSE(parse_value(key("optimizer.learning_rate"), text).ok());
  }
  CHECK_FALSE(parse_value(key("optimizer.beta1"), "1").ok());
  CHECK_FALSE(parse_value(key("optimizer.eps"), "0").ok());
  CHECK(value_text(key("optimizer.weight_decay"),
                   parse_value(key("optimizer.weight_decay"), "-0").value()) == "0");
}

TEST_CASE("flags, choices and lists are read as people write them") {
  for (const auto* text : {"true", "Yes", "ON", "1"}) {
    CHECK(parsed<bool>("parallel.sequence", text));
  }
  for (const auto* text : {"false", "no", "Off", "0"}) {
    CHECK_FALSE(parsed<bool>("parallel.sequence", text));
  }
  CHECK(parsed<std::string>("parallel.schedule", "1f1b") == "1f1b");
  CHECK(failure("parallel.schedule", "GPipe").find("did you mean 'gpipe'?") != std::string::npos);
  CHECK(parsed<std::vector<std::int64_t>>("parallel.stage_layers", "3, 4,5") ==
        std::vector<std::int64_t>{3, 4, 5});
  CHECK(parsed<std::vector<std::int64_t>>("parallel.stage_layers", "").empty());
  CHECK(parsed<std::vector<std::string>>("run.tags", "a b, c") ==
        std::vector<std::string>{"a b", "c"});
  CHECK(parsed<std::vector<WeightedText>>("data.train", "books:0.7, code") ==
        std::vector<WeightedText>{{"books", 0.7}, {"code", 1.0}});
  for (const auto* text : {"1,,2", "1,", ",1", ","}) {
    INFO(text);
    CHECK_FALSE(parse_value(key("parallel.stage_layers"), text).ok());
  }
  for (const auto* text : {"books:", ":1", "books:0", "books:-1", "books:nan", "books:x"}) {
    INFO(text);
    CHECK_FALSE(parse_value(key("data.train"), text).ok());
  }
}

TEST_CASE("auto is a value only where the schema has a rule for it") {
  CHECK(std::holds_alternative<Automatic>(parse_value(key("parallel.data"), "auto").value()));
  CHECK_FALSE(parse_value(key("parallel.bucket_bytes"), "auto").ok());
}

TEST_CASE("texts that a file could not hold are refused") {
  CHECK(failure("run.name", "a\nb").find("holds a control character") != std::string::npos);
  CHECK(failure("run.name", std::string("a\0b", 3)).find("control character") != std::string::npos);
  CHECK(failure("run.name", std::string(70'000, 'x')).size() < 400);
  CHECK(parsed<std::string>("run.name", "größe 训练 🚣") == "größe 训练 🚣");
}

TEST_CASE("texts keep their bytes, in quotes where they would not come back without") {
  const auto text_of = [](const char* name, std::string_view text) {
    return value_text(key(name), parse_value(key(name), text).value());
  };
  CHECK(text_of("run.name", "a#b") == "\"a#b\"");
  CHECK(text_of("run.name", "w\xe9") == "\"w\\xe9\"");
  CHECK(text_of("run.name", "\" a \"") == "\" a \"");
  CHECK(text_of("run.name", "\"plain\"") == "plain");
  CHECK(text_of("run.name", "a, b") == "a, b");
  CHECK(text_of("run.directory", "auto") == "auto");
  CHECK(text_of("run.directory", "\"auto\"") == "\"auto\"");
  CHECK(parsed<std::string>("run.directory", "\"auto\"") == "auto");
  CHECK(text_of("data.train", "\"a,b\", c:1") == "\"a,b\", c");
  CHECK(text_of("data.train", "\"a:b\"") == "a:b:1");
  CHECK(parsed<std::vector<WeightedText>>("data.train", " \"a\\x2c\" : 0.5 ,b") ==
        std::vector<WeightedText>{{"a,", 0.5}, {"b", 1.0}});
  for (const auto* text : {"\"a", "\"a\"b", "\"a\\", "\"\\x", "\"\\x1\"", "\"\\xg0\"", "\"\\q\""}) {
    INFO(text);
    CHECK_FALSE(parse_value(key("run.name"), text).ok());
    CHECK_FALSE(parse_value(key("data.train"), text).ok());
  }
}

TEST_CASE("canonical text reads back as the same value, for random values of every type") {
  const auto random = [](std::uint64_t index, std::uint64_t which) {
    const auto bits = base::philox(11, which, index);
    return std::uint64_t{bits[0]} << 32 | bits[1];
  };
  const auto check = [](const Key& of, const Value& value) {
    const auto text = value_text(of, value);
    const auto again = parse_value(of, text);
    INFO(of.full_name() << " = " << text);
    REQUIRE(again.ok());
    CHECK(*again == value);
    CHECK(value_text(of, *again) == text);
  };
  for (std::uint64_t index = 0; index < 500; ++index) {
    const auto bits = random(index, 1);
    const auto fraction = static_cast<double>(bits) * 0x1p-64;
    check(key("train.seed"), static_cast<std::int64_t>(bits >> (1 + index % 60)));
    check(key("parallel.bucket_bytes"),
          static_cast<std::int64_t>(4096 + bits % (std::uint64_t{1} << (index % 33 + 1))));
    check(key("optimizer.learning_rate"), std::ldexp(fraction, static_cast<int>(index % 80) - 60));
    check(key("comm.timeout"), 0.1 + fraction * 604'000);
    check(key("comm.timeout"), static_cast<double>(1 + bits % 604'000));
    check(key("data.train"), std::vector<WeightedText>{{"a:b", fraction + 0x1p-60}, {"c:d", 1}});
    check(key("parallel.stage_layers"),
          std::vector<std::int64_t>(index % 5 + 1, static_cast<std::int64_t>(bits % 100)));
  }
  check(key("comm.timeout"), 3600.0 * 24 * 7);
  check(key("parallel.data"), Automatic{});
}
