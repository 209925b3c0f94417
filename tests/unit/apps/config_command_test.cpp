#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"
#include "trireme/config/config.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

using namespace trireme::tests;
namespace base = trireme::base;
namespace config = trireme::config;

TEST_CASE("config show prints a file that loads as the same configuration") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "[train]\nsteps = 7\n");
  auto start = trireme_start({"config", "show", path.string(), "--set", "comm.timeout=90s"});
  start.environment["TRIREME_RUN__NAME"] = "from environment";
  const auto end = run_program(start);
  CHECK(end.exit_code == 0);
  CHECK(end.err.empty());
  const auto again = folder.write("b.conf", end.out);
  const auto loaded =
      config::Config::resolve({.files = {again}, .environment = {}, .settings = {}});
  REQUIRE(loaded.ok());
  CHECK(loaded->integer("train.steps") == 7);
  CHECK(loaded->seconds("comm.timeout") == 90);
  CHECK(loaded->text("run.name") == "from environment");
}

TEST_CASE("config show --origin says where each value comes from") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "train.steps = 7\n");
  auto start =
      trireme_start({"config", "show", "--set", "train.seed=1", path.string(), "--origin"});
  start.environment["TRIREME_TRAIN__LOG_EVERY"] = "3";
  const auto end = run_program(start);
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "steps = 7                                # " + path.string() + ":1\n"));
  CHECK(contains(end.out, "seed = 1                                 # --set\n"));
  CHECK(contains(end.out, "log_every = 3                            # TRIREME_TRAIN__LOG_EVERY\n"));
  CHECK(contains(end.out, "micro_batch = 1                          # default\n"));
}

TEST_CASE("config show --get prints one value, and the run directory that a run takes") {
  const auto one =
      run_trireme({"config", "show", "--get", "train.steps", "--set", "train.steps=7"});
  CHECK(one.exit_code == 0);
  CHECK(one.out == "7\n");
  const auto run =
      run_trireme({"config", "show", "--get", "run.directory", "--set", "run.name=a b"});
  CHECK(run.out == "runs/a b\n");
  const auto wrong = run_trireme({"config", "show", "--get", "train.step"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "train.steps"));
}

TEST_CASE("config show --json gives every key with its type and origin") {
  const auto end = run_trireme({"config", "show", "--json", "--set", "data.train=a:0.5"});
  CHECK(end.exit_code == 0);
  const auto json = base::parse_json(end.out, "stdout");
  REQUIRE(json.ok());
  CHECK(json->size() == config::schema().size());
  CHECK((*json)["train.steps"]["value"] == 1000);
  CHECK((*json)["train.steps"]["origin"] == "default");
  CHECK((*json)["parallel.data"]["value"] == "auto");
  CHECK((*json)["comm.timeout"]["value"] == 600.0);
  CHECK((*json)["comm.timeout"]["text"] == "10min");
  CHECK((*json)["data.train"]["value"][0]["weight"] == 0.5);
}

TEST_CASE("config check names every mistake, with exit code 2") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "[train]\nstesp = 7\nseed = -1\n");
  const auto end = run_trireme({"config", "check", path.string()});
  CHECK(end.exit_code == 2);
  CHECK(end.out.empty());
  CHECK(end.err == "trireme: " + path.string() +
                       ":2: there is no key 'train.stesp' (nothing would read it); did you mean "
                       "'train.steps'?\n"
                       "trireme: " +
                       path.string() +
                       ":3: train.seed = -1 is too small (seed of initial weights and dropout); "
                       "give 0 or more\n");
  const auto absent = run_trireme({"config", "check", "absent.conf"});
  CHECK(absent.exit_code == 2);
  CHECK(absent.err ==
        "trireme: cannot open 'absent.conf': No such file or directory (a "
        "configuration file must be readable); check the path\n");
}

TEST_CASE("config check says so when all is right") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "[train]\nsteps = 7\n");
  const auto end = run_trireme({"config", "check", path.string(), "--set", "train.seed=3"});
  CHECK(end.exit_code == 0);
  CHECK(end.out == "correct: 2 of " + std::to_string(config::schema().size()) +
                       " keys are set, the others stand at their defaults\n");
}

TEST_CASE("config reference is docs/configuration.md") {
  const auto end = run_trireme({"config", "reference"});
  CHECK(end.exit_code == 0);
  const auto written =
      base::read_text_file(std::string(TRIREME_SOURCE_DIR) + "/docs/configuration.md");
  REQUIRE(written.ok());
  CHECK((end.out == *written));
}

TEST_CASE("config diff compares files and run directories") {
  const TemporaryFolder folder;
  const auto a = folder.write("a.conf", "train.steps = 7\nrun.name = x\n");
  const auto run = folder.write("run/config.resolved.conf", "train.steps = 8\n");
  const auto end = run_trireme({"config", "diff", a.string(), run.parent_path().string()});
  CHECK(end.exit_code == 0);
  CHECK(end.out == "train.steps: 7 (" + a.string() + ":1) -> 8 (" + run.string() +
                       ":1)\n"
                       "run.name: x (" +
                       a.string() + ":2) -> run (default)\n");
  CHECK(run_trireme({"config", "diff", a.string(), a.string()}).out.empty());
  const auto json = run_trireme({"config", "diff", "--json", a.string(), run.string()});
  const auto first = base::parse_json(json.out.substr(0, json.out.find('\n')), "stdout");
  REQUIRE(first.ok());
  CHECK((*first)["key"] == "train.steps");
  CHECK((*first)["concerns"] == "training");
}
