// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"
#include "trireme/config/config.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

using namespace trireme::tests;
namespace base = trireme::base;
namespace config = trireme::config;
namespace schema = trireme::schema;

namespace {

/// A model of eight heads that nothing is wrong with.
constexpr const char* eight_heads =
    "[model]\narchitecture = llama\nvocab_size = 512\nhidden_size = 64\nintermediate_size = 96\n"
    "num_hidden_layers = 4\nnum_attention_heads = 8\n[train]\nsequence_length = 32\n";

}  // namespace

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
  CHECK(loaded->options().train.steps == 7);
  CHECK(loaded->options().comm.timeout == 90);
  CHECK(loaded->options().run.name == "from environment");
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
  CHECK(json->size() == schema::keys().size());
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
  const auto path = folder.write("a.conf",
                                 "[model]\narchitecture = llama\nvocab_size = 512\n"
                                 "hidden_size = 64\nintermediate_size = 96\n"
                                 "num_hidden_layers = 4\nnum_attention_heads = 8\n");
  const auto end = run_trireme({"config", "check", path.string(), "--set", "train.seed=3"});
  CHECK(end.exit_code == 0);
  CHECK(end.out == "correct: 7 of " + std::to_string(schema::keys().size()) +
                       " keys are set, the others stand at their defaults\n"
                       "not checked: the data (data.train names none)\n");
}

TEST_CASE("config check and train give one verdict on data") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", eight_heads).string();
  const auto check = [&path](const std::string& data) {
    return run_trireme({"config", "check", path, "--set", "data.train=" + data});
  };
  const auto absent = check("/absent");
  CHECK(absent.exit_code == 0);
  CHECK(contains(absent.out, "missing: there are no tokens at '/absent'"));
  for (const auto* data : {"/absent:0.30000000000000004,/absent:0.7"}) {
    const auto checked = check(data);
    CHECK(checked.exit_code == 2);
    CHECK(contains(checked.err, "with at most 9 decimals"));
    const auto started =
        run_trireme({"train", path, "--set", std::string("data.train=") + data, "--set",
                     "run.directory=" + (folder.path() / "run").string()});
    CHECK(started.exit_code == 2);
    CHECK(contains(started.err, "with at most 9 decimals"));
  }
  folder.write("cut.bin", "1234");
  folder.write("cut.idx", "1234");
  const auto cut = check((folder.path() / "cut").string());
  CHECK(cut.exit_code == 6);
  CHECK(contains(cut.err, "cut.idx"));
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

TEST_CASE("config check holds the layout against the model, as plan and the engine do") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", eight_heads).string();
  const auto refusal = [&path](const std::string& setting, int world) {
    const auto checked = run_trireme({"config", "check", path, "--set", setting});
    CHECK(checked.exit_code == 2);
    CHECK(checked.out.empty());
    const auto planned =
        run_trireme({"plan", path, "--ranks", std::to_string(world), "--set", setting});
    CHECK(planned.err == checked.err);
    return checked.err;
  };
  CHECK(run_trireme({"config", "check", path, "--set", "parallel.tensor=4"}).exit_code == 0);
  CHECK(refusal("parallel.tensor=3", 3) ==
        "trireme: parallel.tensor = 3 (--set) does not divide model.num_attention_heads = 8 (" +
            path + ":7) (each rank holds whole heads); try 1, 2, 4, 8\n");
  CHECK(contains(refusal("parallel.pipeline=5", 5), "model.num_hidden_layers = 4"));
  CHECK(contains(refusal("model.num_key_value_heads=3", 1), "does not divide"));
}

TEST_CASE("config check says what it could not ask") {
  const TemporaryFolder folder;
  const auto part = folder.write("part.conf", "[parallel]\ntensor = 3\n");
  auto end = run_trireme({"config", "check", part.string()});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out,
                 "not checked: the model and how it fits its layout (neither "
                 "model.architecture nor model.from is given)\n"));
  end = run_trireme({"config", "check", "--set", "model.from=/absent/model"});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "(there is no '/absent/model/config.json' here)\n"));
  // A tokenizer that is still to be made leaves all but the vocabulary to check.
  auto text = std::string(eight_heads);
  text.replace(text.find("vocab_size = 512\n"), 17, "");
  const auto path = folder.write("a.conf", text + "[data]\ntokenizer = /absent.json\n").string();
  end = run_trireme({"config", "check", path});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "not checked: the size of the vocabulary (there is no '/absent.json'"));
  CHECK(run_trireme({"config", "check", path, "--set", "parallel.tensor=3"}).exit_code == 2);
}

TEST_CASE("config check warns of values that one file takes from another") {
  const TemporaryFolder folder;
  const auto a = folder.write("a.conf", eight_heads);
  const auto b = folder.write("b.conf", "[train]\nsequence_length = 16\nsteps = 5\n");
  const auto end = run_trireme({"config", "check", a.string(), b.string()});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.err, "config: " + b.string() +
                              ":2: train.sequence_length = 16 replaces 32 of " + a.string() +
                              ":9\n"));
  CHECK_FALSE(contains(end.err, "train.steps"));
  CHECK(contains(end.err, "check files that do not belong together one at a time\n"));
  CHECK(run_trireme({"config", "check", a.string()}).err.empty());
}

TEST_CASE("config show takes a run directory, and --origin says what the run wrote down") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", "[train]\nsteps = 7\n");
  const auto resolved =
      run_trireme({"config", "show", "--origin", path.string(), "--set", "train.seed=3"});
  const auto file = folder.write("run/config.resolved.conf", resolved.out);
  for (const auto& source : {file, file.parent_path()}) {
    const auto end = run_trireme({"config", "show", "--origin", source.string()});
    INFO(end.err);
    CHECK(end.exit_code == 0);
    CHECK(end.out == resolved.out);
  }
  const auto diff = run_trireme({"config", "diff", path.string(), file.parent_path().string()});
  CHECK(diff.out == "train.seed: 1234 (default) -> 3 (--set)\n");
}

TEST_CASE("config check refuses the places that a start would refuse") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", eight_heads).string();
  const auto file = folder.write("file", "").string();
  const auto taken = folder.write("shared/run", "some-id\n/elsewhere/run\n").parent_path().string();
  struct Case {
    std::string setting;
    int exit_code;
    std::string part;
  };
  const std::vector<Case> cases{
      {"run.directory=" + file, 6, "run.directory = " + file + " cannot be made or written to"},
      {"run.directory=" + file + "/below", 6, "Not a directory); name a folder that can"},
      {"checkpoint.directory=gs://bucket/x", 2, "no URL that is known here"},
      {"checkpoint.directory=" + file, 6, "checkpoint.directory = " + file},
      {"checkpoint.directory=" + file + "/below", 6, "Not a directory"},
      {"checkpoint.directory=" + taken, 2, "checkpoints of another run, '/elsewhere/run'"}};
  for (const auto& [setting, exit_code, part] : cases) {
    CAPTURE(setting);
    const auto end = run_trireme({"config", "check", path, "--set", setting});
    INFO(end.err);
    CHECK(end.exit_code == exit_code);
    CHECK(contains(end.err, part));
  }
  for (const auto* const variable : {"OMP_NUM_THREADS", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) {
    CAPTURE(variable);
    auto start = trireme_start({"config", "check", path});
    start.environment[variable] = "many";
    const auto end = run_program(start);
    CHECK(end.exit_code == 2);
    CHECK(contains(end.err, std::string(variable) + "=many"));
  }
  // Nothing was made.
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(file).parent_path() / "runs"));
}

TEST_CASE(
    "config check reads a tokenizer for its size beside which an end is declared that it lacks") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.conf", std::string(eight_heads)).string();
  const auto tokenizer = folder.path() / "tokenizer.json";
  std::filesystem::copy_file(TRIREME_SOURCE_DIR "/tests/golden/tokenizer/gpt2.json", tokenizer);
  folder.write("tokenizer_config.json", R"({"eos_token":"<none>"})");
  auto text = std::string(eight_heads);
  text.erase(text.find("vocab_size"), std::string("vocab_size = 512\n").size());
  const auto sized = folder.write("b.conf", text).string();
  for (const auto& each : {path, sized}) {
    const auto end =
        run_trireme({"config", "check", each, "--set", "data.tokenizer=" + tokenizer.string()});
    INFO(end.err);
    CHECK(end.exit_code == 0);
  }
}
