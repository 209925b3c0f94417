// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/resolved_text.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/base/text.hpp"
#include "trireme/config/config.hpp"
#include "trireme/config/sources.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme::config;

TEST_CASE("every value of a resolved text is found by its key") {
  const Config config;
  for (const auto origins : {Config::Origins::shown, Config::Origins::hidden}) {
    const auto text = config.resolved_text(origins);
    for (const auto& key : trireme::schema::keys()) {
      INFO(key.full_name());
      CHECK(resolved_value(text, key.full_name()) == config.shown(key.full_name()));
    }
  }
}

TEST_CASE("a resolved text gives back every text, whatever its bytes") {
  const trireme::tests::TemporaryFolder folder;
  constexpr std::string_view letters = "ab#\"\\, :=[]';\xE9\xC3\xA9\xFF\x80=x0auto";
  std::uint64_t round = 0;
  const auto odd = [&](std::uint64_t which) {
    std::string text;
    const auto size = 1 + trireme::base::philox(5, round, which)[0] % 9;
    for (std::uint64_t at = 0; at < size; ++at) {
      text += letters[trireme::base::philox(5, round, which + at + 1)[0] % letters.size()];
    }
    return text;
  };
  const auto set = [](Config& config, const char* key, const trireme::schema::Value& value) {
    const auto text = trireme::schema::value_text(*trireme::schema::find_key(key), value);
    INFO(text);
    config = config.with(key, text, Origin::program("test")).value();
    REQUIRE(config.value(key) == value);
  };
  for (; round < 400; ++round) {
    Config config;
    set(config, "run.name", odd(0));
    set(config, "run.directory", round == 0 ? "auto" : odd(20));
    set(config, "run.tags", std::vector<std::string>{odd(40), odd(60)});
    set(config, "data.train",
        std::vector<trireme::schema::WeightedText>{{odd(80), 1}, {odd(100), 0.25}});
    for (const auto origins : {Config::Origins::shown, Config::Origins::hidden}) {
      const auto text = config.resolved_text(origins);
      INFO(text);
      CHECK_FALSE(trireme::base::first_broken_utf8(text).has_value());
      const auto again = Config::resolve(
          {.files = {folder.write("a.conf", text)}, .environment = {}, .settings = {}});
      if (!again) FAIL(again.failure().text);
      CHECK(*again == config);
      CHECK(resolved_value(text, "data.train") == config.shown("data.train"));
    }
  }
}

TEST_CASE("a resolved text of another version gives what it has") {
  const std::string text = "[train]\nsteps = 8   # a.conf:3\nnew_key = 1\n\n[old]\nsteps = 9\n";
  CHECK(resolved_value(text, "train.steps") == "8");
  CHECK(resolved_value(text, "old.steps") == "9");
  CHECK_FALSE(resolved_value(text, "train.seed").has_value());
  CHECK_FALSE(resolved_value(text, "data.steps").has_value());
  CHECK_FALSE(resolved_value("", "train.steps").has_value());
}

TEST_CASE("all values of a resolved text come with the origins that it names") {
  const auto values = trireme::config::recorded_values(
      "; junk\nlost = 1\n[train]\r\nsteps = 8   # a.conf:3\nempty =  # --set\nplain = x\n = 3\n"
      "no equals # =\n[unended\n[data]\ntrain = a b\n");
  REQUIRE(values.size() == 4);
  CHECK(values[0].key == "train.steps");
  CHECK(values[0].text == "8");
  CHECK(values[0].origin == "a.conf:3");
  CHECK(values[1].key == "train.empty");
  CHECK(values[1].text.empty());
  CHECK(values[1].origin == "--set");
  CHECK(values[2].text == "x");
  CHECK(values[2].origin.empty());
  CHECK(values[3].key == "data.train");
  CHECK(values[3].text == "a b");
}

TEST_CASE("a resumed configuration finds again what its run has found") {
  const trireme::tests::TemporaryFolder folder;
  const auto file = folder.write(
      "run/config.resolved.conf",
      "[parallel]\ndata = 4 # auto\ntensor = 2 # a.conf:3\n[train]\nglobal_batch = 8 # its own\n"
      "steps = 7 # default\n[checkpoint]\nload = none # --set\n[run]\ndirectory = old # auto\n");
  constexpr std::string_view found[] = {"auto", "its own"};
  const Sources sources{.files = {file}, .environment = {}, .settings = {"optimizer.beta1=0.5"}};
  const auto resumed = resolve_resumed(sources, found);
  REQUIRE(resumed.ok());
  CHECK(resumed->automatic("parallel.data"));
  CHECK(resumed->automatic("train.global_batch"));
  CHECK(resumed->automatic("checkpoint.load"));
  CHECK(resumed->options().parallel.tensor == 2);
  CHECK(resumed->origin("parallel.tensor").text() == "a.conf:3");
  CHECK(resumed->options().train.steps == 7);
  CHECK_FALSE(resumed->given("train.steps"));
  CHECK(resumed->options().optimizer.beta1 == 0.5);
  // As a file it is what it says.
  CHECK(Config::resolve(sources)->options().parallel.data == 4);
  CHECK(run_directory(*Config::resolve(sources)) == "old");
  // In a run it names the folder that it is in.
  folder.write("run/model.json", "{}");
  CHECK(run_directory(*Config::resolve(sources)) == file.parent_path());
}
