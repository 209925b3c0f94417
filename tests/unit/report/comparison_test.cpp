// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/comparison.hpp"

#include "trireme/base/columns.hpp"

#include "report/figure_texts.hpp"
#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace trireme;
using tests::holds;

namespace {

std::vector<report::RunView> views(const tests::HandMadeRuns& runs,
                                   const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> paths;
  for (const auto& name : names) paths.push_back(runs.path(name));
  return base::value_or_throw(report::read_runs(paths));
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, base::width_of(line));
  }
  return widest;
}

}  // namespace

TEST_CASE("numbers of pages have three digits at least, and no power of ten") {
  CHECK(report::three_digits(0.5984) == "0.598");
  CHECK(report::three_digits(24.06) == "24.1");
  CHECK(report::three_digits(2269.6) == "2270");
  CHECK(report::three_digits(0) == "0");
  CHECK(report::peak_text(248688754688.0) == "0.249 TFLOP/s");
  CHECK(report::peak_text(1.5e15) == "1500 TFLOP/s");
}

TEST_CASE("only keys that differ are compared, and names of runs are none") {
  const tests::HandMadeRuns runs;
  runs.configure("a",
                 "[train]\nsteps = 10 # a.conf:1\nseed = 1 # default\n[run]\nname = a\n"
                 "directory = runs/a\n[old]\nkey = 5 # x\n");
  runs.configure("b",
                 "[train]\nsteps = 20 # --set\nseed = 1 # --set\n[run]\nname = b\n"
                 "directory = runs/b\n[new]\nkey = 6\n");
  const auto all = report::differences(views(runs, {"a", "b"}));
  REQUIRE(all.size() == 3);
  CHECK(all[0].key == "train.steps");
  CHECK(all[0].values[0]->text == "10");
  CHECK(all[0].values[1]->origin == "--set");
  CHECK(all[1].key == "old.key");
  CHECK_FALSE(all[1].values[1].has_value());
  CHECK(all[2].key == "new.key");
  CHECK_FALSE(all[2].values[0].has_value());
  CHECK(all[2].values[1]->text == "6");
}

TEST_CASE("figures are means and medians of the steps that count") {
  const tests::HandMadeRuns runs;
  runs.configure("a", "[train]\nsteps = 200\n");
  runs.start("a");
  for (int step = 1; step <= 100; ++step) {
    // The first five of a start are slow.
    runs.step("a", step, step <= 50 ? 9 : 3,
              step <= 5 ? ",\"step_ms\":1000,\"tokens_per_second\":1,\"mfu\":0.01"
                        : ",\"step_ms\":10,\"tokens_per_second\":400,\"mfu\":0.5,\"epochs\":1.5");
  }
  runs.write("a", "metrics.jsonl",
             "{\"kind\":\"eval\",\"step\":50,\"loss\":3.5}\n"
             "{\"kind\":\"eval\",\"step\":100,\"loss\":4.5}\n");
  const auto figures = report::figures_of(runs.view("a"));
  CHECK(figures.step == 100);
  CHECK(figures.planned_steps == 200);
  CHECK(figures.loss == Approx(3));
  CHECK(figures.held_out_loss == 4.5);
  CHECK(figures.best_held_out_loss == 3.5);
  CHECK(figures.best_step == 50);
  CHECK(figures.tokens == 10'000);
  CHECK(figures.epochs == 1.5);
  CHECK(figures.tokens_per_second == 400);
  CHECK(figures.mfu == 0.5);
  CHECK(figures.peak_flops == 2e12);
  CHECK(figures.step_seconds == Approx(5.95));
  const auto text = report::comparison_text(views(runs, {"a"}), 100);
  CHECK(holds(text, "50.0 % of 2 TFLOP/s, its data sheet"));
  CHECK(holds(text, "epochs of data"));
  CHECK(holds(text, "4.5000 (best 3.5000 at step 50)"));
}

TEST_CASE("a comparison of two or three runs fits the terminal, whatever it compares") {
  const tests::HandMadeRuns runs;
  const auto origin = std::string(90, 'o') + "/x.conf:3";
  for (const auto* run : {"one", "two", "three", "four"}) {
    runs.configure(run, base::format("[data]\ntrain = /a/{}/{} # {}\n[train]\nsteps = 5\n", run,
                                     std::string(200, 't'), origin));
    runs.start(run);
    runs.step(run, 1, 2);
  }
  for (const std::size_t columns : {80U, 100U}) {
    for (const auto& names : std::vector<std::vector<std::string>>{
             {"one", "two"}, {"one", "two", "three"}, {"one", "two", "three", "four"}}) {
      const auto text = report::comparison_text(views(runs, names), columns);
      CHECK(widest_line(text) <= columns);
      CHECK(holds(text, "data.train"));
      for (const auto& name : names) CHECK(holds(text, name));
    }
  }
}

TEST_CASE("equal configurations are said to be equal, and control characters are shown") {
  const tests::HandMadeRuns runs;
  for (const auto* run : {"a", "b\x1b[2J"}) runs.configure(run, "[train]\nsteps = 10\n");
  const auto text = report::comparison_text(views(runs, {"a", "b\x1b[2J"}), 100);
  CHECK(holds(text, "the configurations are equal"));
  CHECK(holds(text, "b\\x1b[2J"));
  CHECK_FALSE(holds(text, "\x1b"));
}

TEST_CASE("the comparison for programs has every figure and difference") {
  const tests::HandMadeRuns runs;
  runs.configure("a", "[train]\nsteps = 10 # a.conf:1\n");
  runs.configure("b", "[data]\nshuffle = true\n");
  runs.step("a", 3, 2);
  const auto json = report::comparison_json(views(runs, {"a", "b"}));
  REQUIRE(json["runs"].size() == 2);
  for (const auto* key : {"run", "path", "state", "step", "steps", "starts", "loss",
                          "held_out_loss", "best_held_out_loss", "tokens", "epochs",
                          "tokens_per_second", "mfu", "peak_flops", "parameters", "step_seconds"}) {
    INFO(key);
    CHECK(json["runs"][0].contains(key));
  }
  CHECK(json["runs"][0]["step"] == 3);
  CHECK(json["runs"][0]["loss"] == 2);
  CHECK(json["runs"][1]["loss"].is_null());
  REQUIRE(json["differences"].size() == 2);
  CHECK(json["differences"][0]["values"][0]["origin"] == "a.conf:1");
  CHECK(json["differences"][0]["values"][1].is_null());
}

TEST_CASE("runs of the same name are told apart by their paths") {
  const tests::HandMadeRuns runs;
  for (const auto* run : {"x/a", "y/a", "b"}) runs.configure(run, "");
  const auto all = views(runs, {"x/a/", "y/a", "b"});
  CHECK(all[0].name == runs.path("x/a/").string());
  CHECK(all[1].name == runs.path("y/a").string());
  CHECK(all[2].name == "b");
}

TEST_CASE("what is no run directory is a failure that says what is missing") {
  const tests::HandMadeRuns runs;
  runs.write("a", "notes.txt", "");
  const std::vector<std::filesystem::path> paths{runs.path("a")};
  const auto read = report::read_runs(paths);
  REQUIRE_FALSE(read.ok());
  CHECK(holds(read.failure().text, "is no run directory"));
  CHECK(holds(read.failure().text, "config.resolved.conf"));
}
