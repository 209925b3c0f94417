// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/layout/mesh.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme::config;
using trireme::tests::TemporaryFolder;
namespace base = trireme::base;

namespace {

Config resolved(const std::vector<std::string>& settings) {
  return base::value_or_throw(
      Config::resolve({.files = {}, .environment = {}, .settings = settings}));
}

}  // namespace

TEST_CASE("a stronger source wins and every value knows where it comes from") {
  const TemporaryFolder folder;
  const auto a = folder.write("a.conf",
                              "[train]\nsteps = 1\nseed = 1\nmicro_batch = 1\n"
                              "sequence_length = 1\n");
  const auto b =
      folder.write("b.conf", "[train]\nseed = 2\nmicro_batch = 2\nsequence_length = 2\n");
  const base::Environment environment({{"TRIREME_TRAIN__MICRO_BATCH", "3"},
                                       {"TRIREME_TRAIN__SEQUENCE_LENGTH", "3"},
                                       {"TRIREME_MODEL__ROPE_SCALING__ROPE_TYPE", "default"},
                                       {"TRIREME_ROOT", "not a key"},
                                       {"PATH", "/bin"}});
  const auto config = base::value_or_throw(
      Config::resolve({.files = {a, b},
                       .environment = environment,
                       .settings = {"train.sequence_length=4", "train.sequence_length = 5"}}));
  CHECK(config.options().train.log_every == 1);
  CHECK(config.origin("train.log_every").text() == "default");
  CHECK_FALSE(config.given("train.log_every"));
  CHECK(config.options().train.steps == 1);
  CHECK(config.origin("train.steps").text() == a.string() + ":2");
  CHECK(config.given("train.steps"));
  CHECK(config.options().train.seed == 2);
  CHECK(config.origin("train.seed").text() == b.string() + ":2");
  CHECK(config.options().train.micro_batch == 3);
  CHECK(config.origin("train.micro_batch").text() == "TRIREME_TRAIN__MICRO_BATCH");
  CHECK(config.options().model.rope_scaling.rope_type == RopeType::none);
  CHECK(config.options().train.sequence_length == 5);
  CHECK(config.origin("train.sequence_length").text() == "--set");
  CHECK(config.cited("train.sequence_length") == "train.sequence_length = 5 (--set)");
}

TEST_CASE("the launch wins over files and loses to variables and settings") {
  const TemporaryFolder folder;
  const auto file = folder.write("a.conf", "[parallel]\ntensor = 2\npipeline = 2\ndata = 2\n");
  const std::map<std::string, std::string, std::less<>> variables{
      {"TRIREME_PARALLEL__PIPELINE", "3"}};
  const auto config = base::value_or_throw(
      Config::resolve({.files = {file},
                       .environment = base::Environment(variables),
                       .settings = {"parallel.data=3"},
                       .launched = {{"parallel.tensor", "4", "srun --tensor-parallel"},
                                    {"parallel.pipeline", "4", "srun --pipeline-parallel"},
                                    {"parallel.data", "4", "srun --data-parallel"}}}));
  CHECK(config.cited("parallel.tensor") == "parallel.tensor = 4 (srun --tensor-parallel)");
  CHECK(config.cited("parallel.pipeline") == "parallel.pipeline = 3 (TRIREME_PARALLEL__PIPELINE)");
  CHECK(config.cited("parallel.data") == "parallel.data = 3 (--set)");
  const auto wrong = Config::resolve({.files = {},
                                      .environment = {},
                                      .settings = {},
                                      .launched = {{"train.stepz", "4", "srun --trireme-set"}}});
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.failure().text.starts_with("srun --trireme-set: there is no key 'train.stepz'"));
}

TEST_CASE("options have each type as its C++ type") {
  const auto options =
      resolved({"comm.timeout=1h30m", "parallel.bucket_bytes=1MiB", "parallel.pipeline=2",
                "parallel.stage_layers=3,4", "run.tags=a, b", "data.train=x:2,y", "train.steps=12",
                "numerics.precision=bf16"})
          .options();
  CHECK(options.train.steps == 12);
  CHECK(options.optimizer.beta1 == 0.9);
  CHECK(options.optimizer.beta2 == 0.95);
  CHECK(options.data.shuffle);
  CHECK(options.optimizer.name == UpdateRule::adamw);
  CHECK(options.numerics.precision == Precision::bf16);
  CHECK(options.parallel.bucket_bytes == 1 << 20);
  CHECK(options.comm.timeout == 5400);
  CHECK(options.comm.start_timeout == 300);
  CHECK(options.parallel.stage_layers == std::vector<std::int64_t>{3, 4});
  CHECK(options.run.tags == std::vector<std::string>{"a", "b"});
  CHECK(options.data.train == std::vector<trireme::schema::WeightedText>{{"x", 2.0}, {"y", 1.0}});
  CHECK_FALSE(options.parallel.data.has_value());
  CHECK_FALSE(options.model.rope_theta.has_value());
  CHECK_FALSE(options.checkpoint.load.has_value());
  CHECK(options.decay_steps() == 2);
  CHECK(options.data_seed() == options.train.seed);
}

namespace {

/// A value of the key that is not its default.
std::string another_text(const trireme::schema::Key& key) {
  using trireme::schema::Type;
  switch (key.type) {
    case Type::integer:
      return key.default_text == "1" ? "0" : "1";
    case Type::real:
      return key.default_text == "0.5" ? "0.25" : "0.5";
    case Type::flag:
      return key.default_text == "true" ? "false" : "true";
    case Type::choice:
      return std::string(key.choices.front() == key.default_text ? key.choices.back()
                                                                 : key.choices.front());
    case Type::bytes:
      return "1MiB";
    case Type::seconds:
      return "77s";
    case Type::text:
      return "x";
    case Type::integers:
      return "7";
    case Type::texts:
    case Type::weighted_texts:
      return "x, y";
  }
  return "";
}

}  // namespace

TEST_CASE("every key is read into the options, and every choice means something else") {
  const Config standard;
  for (const auto& key : trireme::schema::keys()) {
    const auto name = key.full_name();
    INFO(name);
    const auto with = [&](const Config& config, std::string_view text) {
      auto changed = config.with(name, text, Origin::program("test"));
      // Counts begin at 1 where 0 means nothing.
      if (!changed.ok()) changed = config.with(name, "2", Origin::program("test"));
      REQUIRE(changed.ok());
      return *changed;
    };
    const auto other = with(standard, another_text(key));
    CHECK_FALSE(other.options() == standard.options());
    CHECK(with(other, key.default_text).options() == standard.options());
    for (std::size_t one = 0; one < key.choices.size(); ++one) {
      for (std::size_t two = 0; two < one; ++two) {
        CHECK_FALSE(with(standard, key.choices[one]).options() ==
                    with(standard, key.choices[two]).options());
      }
    }
  }
}

TEST_CASE("asking for an unknown key breaks a contract") {
  const Config config;
  for (const auto& ask : std::vector<std::function<void()>>{
           [&] { (void)config.shown("train.step"); }, [&] { (void)config.given("nothing"); },
           [&] { (void)config.with("nothing", "1", Origin::program("test")); }}) {
    try {
      ask();
      FAIL_CHECK("nothing was thrown");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::internal);
    }
  }
}

TEST_CASE("a changed copy leaves the first alone and is checked") {
  const Config config;
  const auto changed = config.with("train.steps", "5", Origin::program("checkpoint step 100"));
  REQUIRE(changed.ok());
  CHECK(changed->options().train.steps == 5);
  CHECK(changed->origin("train.steps").text() == "checkpoint step 100");
  CHECK(config.options().train.steps == 1000);
  const auto refused = config.with("train.steps", "0", Origin::program("checkpoint step 100"));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().text ==
        "checkpoint step 100: train.steps = 0 is too small (optimizer updates of the whole run); "
        "give 1 or more steps");
}

TEST_CASE("the resolved text loads as the same configuration") {
  const TemporaryFolder folder;
  const auto first = resolved(
      {"comm.timeout=1500ms", "parallel.bucket_bytes=5000000", "data.train=/a/b c:0.25, d:e:1",
       "run.tags=ü, x y", "run.name=a = [b]", "optimizer.learning_rate=0.1", "parallel.pipeline=2",
       "parallel.stage_layers=3,4", "train.seed=9223372036854775807", "model.head_dim=48"});
  for (const auto origins : {Config::Origins::shown, Config::Origins::hidden}) {
    const auto path = folder.write("resolved.conf", first.resolved_text(origins));
    const auto again = Config::resolve({.files = {path}, .environment = {}, .settings = {}});
    REQUIRE(again.ok());
    CHECK(*again == first);
    CHECK(again->hash() == first.hash());
    CHECK(diff(first, *again).empty());
  }
  CHECK(first.resolved_text().find("timeout = 1.5s                           # --set\n") !=
        std::string::npos);
  const auto defaults = folder.write("default.conf", Config().resolved_text());
  CHECK(Config::resolve({.files = {defaults}, .environment = {}, .settings = {}}).value() ==
        Config());
}

TEST_CASE("the digest depends on every value and on nothing else") {
  const Config config;
  // A constant, so that ranks of different builds and machines agree.
  const auto first = config.hash();
  CHECK(resolved({"train.steps=1000"}).hash() == first);
  CHECK(resolved({"comm.timeout=600"}).hash() == first);
  for (const auto* setting : {"train.steps=1001", "run.name=x", "model.hidden_size=8",
                              "comm.timeout=601", "parallel.sequence=true"}) {
    INFO(setting);
    CHECK(resolved({setting}).hash() != first);
  }
  constexpr std::string_view model[] = {"model"};
  CHECK(resolved({"run.name=x"}).fingerprint_of_sections(model) ==
        config.fingerprint_of_sections(model));
  CHECK(resolved({"model.hidden_size=8"}).fingerprint_of_sections(model) !=
        config.fingerprint_of_sections(model));
}

TEST_CASE("a difference names both values, both origins and what it concerns") {
  const auto differences =
      diff(resolved({"train.steps=5", "parallel.tensor=2"}), resolved({"train.steps=6"}));
  REQUIRE(differences.size() == 2);
  CHECK(differences[0].key == "parallel.tensor");
  CHECK(differences[0].second_origin.text() == "default");
  CHECK(differences[0].concern == trireme::schema::Concern::layout);
  CHECK(differences[1].key == "train.steps");
  CHECK(differences[1].first == "5");
  CHECK(differences[1].second == "6");
}

TEST_CASE("the run directory follows the name unless it is given") {
  CHECK(run_directory(resolved({"run.name=x"})) == "runs/x");
  CHECK(run_directory(resolved({"run.name=x", "run.directory=/there"})) == "/there");
}

TEST_CASE("values that a later file replaces are listed, those that mean the same are not") {
  const TemporaryFolder folder;
  const auto a = folder.write("a.conf", "[train]\nsteps = 5\nseed = 1\n[run]\nname = x\n");
  const auto b = folder.write("b.conf", "[train]\nsteps = 7\nseed = +1\n");
  const auto c = folder.write("c.conf", "[train]\nsteps = 9\n");
  const std::vector<std::filesystem::path> files{a, b, c};
  const auto replaced = trireme::config::replaced_values(files);
  REQUIRE(replaced.size() == 2);
  CHECK(replaced[0].key == "train.steps");
  CHECK(replaced[0].first == "5");
  CHECK(replaced[0].second == "7");
  CHECK(replaced[0].first_origin.text() == a.string() + ":2");
  CHECK(replaced[1].first == "7");
  CHECK(replaced[1].second_origin.text() == c.string() + ":2");
}

TEST_CASE("an arrangement has the value of each of its keys, degrees of every axis among them") {
  CHECK(trireme::layout::degree_keys().size() == trireme::layout::axis_count);
  for (const auto& key : trireme::layout::arrangement_keys()) {
    INFO(key.key);
    REQUIRE(trireme::schema::find_key(key.key) != nullptr);
    if (key.number == nullptr) continue;
    const auto config = resolved({}).with(key.key, "3", Origin::program("test"));
    REQUIRE(config.ok());
    CHECK(arrangement(config->options()).*key.number == 3);
  }
}

TEST_CASE("a setting that is to be chosen is the default until it is, whatever stood before") {
  const auto config =
      resolved({"parallel.tensor=4", "parallel.schedule=gpipe", "train.micro_batch=8",
                "parallel.tensor=auto", "parallel.schedule=auto", "train.micro_batch=auto"});
  CHECK(config.automatic("parallel.tensor"));
  CHECK(config.options().parallel.tensor == 1);
  CHECK(config.options().parallel.schedule ==
        trireme::layout::ScheduleKind::one_forward_one_backward);
  CHECK(config.options().train.micro_batch == 1);
  CHECK(config.shown("parallel.tensor") == "auto");
  // No rule is broken by what is not known yet.
  CHECK(resolved({"parallel.virtual_stages=2", "parallel.schedule=auto"})
            .automatic("parallel.schedule"));
  const auto chosen =
      base::value_or_throw(config.with("parallel.tensor", "2", Origin::program("auto")));
  CHECK_FALSE(chosen.automatic("parallel.tensor"));
  CHECK(chosen.options().parallel.tensor == 2);
}
