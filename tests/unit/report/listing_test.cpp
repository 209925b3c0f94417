// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/listing.hpp"

#include "trireme/record/run_lock.hpp"

#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <sstream>

using namespace trireme;
using report::State;
using tests::holds;

namespace {

constexpr const char* timed = ",\"step_ms\":10,\"tokens_per_second\":5000";
/// 2026-11-21 09:38:30 UTC.
constexpr std::int64_t later_ms = 1795253910000;

report::Listing list(const std::filesystem::path& folder) {
  return base::value_or_throw(report::list_runs(folder));
}

const report::ListedRun& named(const report::Listing& listing, const std::string& name) {
  for (const auto& run : listing.runs) {
    if (run.name == name) return run;
  }
  FAIL("no run " + name);
  return listing.runs.front();
}

}  // namespace

TEST_CASE("runs are found at any depth, and nothing inside of them") {
  const tests::HandMadeRuns runs;
  runs.step("a", 1, 2);
  runs.configure("deep/er/b", "[train]\nsteps = 9\n");
  runs.step("a/checkpoints/c", 1, 2);
  runs.step(".hidden/d", 1, 2);
  runs.write("other", "notes.txt", "x");
  std::filesystem::create_directory_symlink(runs.path("a"), runs.path("link"));
  const auto listing = list(runs.folder());
  REQUIRE(listing.runs.size() == 2);
  CHECK(named(listing, "a").step == 1);
  CHECK(named(listing, "deep/er/b").planned_steps == 9);
  // A folder that is a run itself.
  CHECK(list(runs.path("a")).runs.size() == 1);
}

TEST_CASE("the state of a run is what its lock and trireme why say") {
  const tests::HandMadeRuns runs;
  for (const auto* run : {"done", "stopped", "failed", "killed", "held", "logged"}) {
    runs.start(run);
    runs.step(run, 7, 2.5, timed);
  }
  runs.event("done", "done", 7);
  runs.event("stopped", "stop", 7);
  runs.write("failed", "failure.json", R"({"cause": "it broke", "exit_code": 6})");
  runs.write("logged", "log/r0000.txt",
             "2026-11-21T09:37:34.123Z error   r0000/0001 n1 train: no more memory\n");
  const auto lock = record::RunLock::take(runs.path("held"), "");
  REQUIRE(lock.ok());
  const auto listing = list(runs.folder());
  CHECK(named(listing, "done").state == State::finished);
  CHECK(named(listing, "stopped").state == State::stopped);
  CHECK(named(listing, "failed").state == State::failed);
  CHECK(named(listing, "logged").state == State::failed);
  CHECK(named(listing, "killed").state == State::unknown);
  CHECK(named(listing, "held").state == State::running);
  // The one that runs comes first.
  CHECK(listing.runs.front().name == "held");
  for (const auto& run : listing.runs) {
    const auto view = runs.view(run.name);
    INFO(run.name);
    CHECK(view.state == run.state);
    CHECK(run.step == 7);
    CHECK(run.loss == 2.5);
    CHECK(run.tokens_per_second == Approx(5000));
  }
}

TEST_CASE("the newest runs come first") {
  const tests::HandMadeRuns runs;
  for (const int second : {10, 30, 20}) {
    runs.write(base::format("r{}", second), "metrics.jsonl",
               base::format("{{\"kind\":\"train\",\"step\":1,\"loss\":1,\"time\":"
                            "\"2026-11-21T09:37:{}.000Z\"}}\n",
                            second));
  }
  const auto listing = list(runs.folder());
  REQUIRE(listing.runs.size() == 3);
  CHECK(listing.runs[0].name == "r30");
  CHECK(listing.runs[1].name == "r20");
  CHECK(listing.runs[2].name == "r10");
}

TEST_CASE("no line of the table is wider than the terminal, and names keep their ends") {
  const tests::HandMadeRuns runs;
  const auto name = base::format("{:x>120}/the-end\x1b[2J", "");
  runs.configure(name, "[train]\nsteps = 1000000\n");
  runs.step(name, 999'999, 1.25, timed);
  const auto text = report::text_of(list(runs.folder()).runs, 100, later_ms);
  CHECK(holds(text, "the-end"));
  CHECK(holds(text, "999999/1000000"));
  CHECK(holds(text, "1 min"));
  CHECK(holds(text, "5000"));
  CHECK_FALSE(holds(text, "\x1b"));
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    // "…" is three bytes.
    CHECK(line.size() <= 102);
  }
  CHECK(count == 2);
}

TEST_CASE("what is not known of a run is null, and a dash") {
  const tests::HandMadeRuns runs;
  runs.configure("a", "");
  const auto listing = list(runs.folder());
  REQUIRE(listing.runs.size() == 1);
  const auto json = report::to_json(listing.runs.front());
  CHECK(json["state"] == "unknown");
  for (const auto* key : {"steps", "loss", "tokens_per_second", "time"}) CHECK(json[key].is_null());
  CHECK(
      holds(report::text_of(listing.runs, 100, later_ms), "a    unknown     -     -      -    -"));
}

TEST_CASE("a folder that is not there is a failure with its name") {
  const auto listing = report::list_runs("/no/such/folder");
  REQUIRE_FALSE(listing.ok());
  CHECK(holds(listing.failure().text, "'/no/such/folder' is no folder"));
}

TEST_CASE("a run is listed where it stands, whatever its history") {
  const tests::HandMadeRuns runs;
  const auto made = [&runs](const std::string& run, int first, int last) {
    for (int step = first; step <= last; ++step) runs.step(run, step, 1000.0 / step, timed);
  };
  const auto line = [&runs](const std::string& run, const std::string& text) {
    runs.write(run, "metrics.jsonl", text + "\n");
  };
  for (const auto* run : {"killed", "back", "far back", "nothing", "clock", "loaded"}) {
    runs.configure(run, "[train]\nsteps = 500\n");
    if (run != std::string("loaded")) {
      runs.start(run);
      made(run, 1, 500);
    }
  }
  // Killed behind a save of step 450: begun again, and a few steps made again.
  line("killed", R"({"kind":"save","step":450})");
  runs.start("killed", 451);
  made("killed", 451, 453);
  // Went back within a start; both the newest steps and those before lie in the record's end.
  line("back", R"({"kind":"event","event":"went back","step":500,"to":490})");
  made("back", 491, 492);
  // To a step whose line stands before the record's end, and has made none since.
  line("far back", R"({"kind":"event","event":"went back","step":500,"to":9})");
  // All steps were done before.
  runs.event("nothing", "done", 500);
  runs.start("nothing", 501);
  runs.event("nothing", "done", 500);
  // The time of day was set back by a year.
  line("clock", R"({"kind":"train","step":501,"loss":2,"time":"2025-11-21T09:37:30.000Z"})");
  // Loaded from another run.
  runs.start("loaded", 301);

  const auto listing = list(runs.folder());
  CHECK(named(listing, "killed").step == 453);
  CHECK(named(listing, "killed").loss == Approx(1000.0 / 453));
  CHECK(named(listing, "back").step == 492);
  CHECK(named(listing, "far back").step == 9);
  CHECK(named(listing, "far back").loss == Approx(1000.0 / 9));
  CHECK(named(listing, "nothing").step == 500);
  CHECK(named(listing, "nothing").state == State::finished);
  CHECK(named(listing, "nothing").loss == Approx(2));
  CHECK(named(listing, "clock").step == 501);
  CHECK(named(listing, "loaded").step == 300);
  // A run of last year is the oldest; no age is negative.
  CHECK(listing.runs.back().name == "clock");
  CHECK(report::text_of(listing.runs, 100, later_ms).find('-' + std::string("1")) ==
        std::string::npos);
  for (const auto* run : {"killed", "back", "far back", "nothing", "loaded"}) {
    CAPTURE(run);
    const auto figures = report::figures_of(runs.view(run));
    CHECK(figures.step == named(listing, run).step);
  }
}
