// SPDX-License-Identifier: Apache-2.0
// Every list of runs over every history that a run may have.
#include "unit/report/histories.hpp"

#include "trireme/base/text.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/report/comparison.hpp"
#include "trireme/report/listing.hpp"
#include "trireme/report/page.hpp"
#include "trireme/report/watch.hpp"

#include "report/page/drawn_runs.hpp"
#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using base::format;
using report::State;
using tests::History;
using tests::holds;

namespace {

constexpr auto configuration = "[train]\nsteps = 20\n[checkpoint]\nevery_steps = 10\n";

/// All of them, each as a run of its number.
struct Runs {
  tests::HandMadeRuns folder;
  std::vector<History> all = tests::histories();

  Runs() {
    for (std::size_t index = 0; index < all.size(); ++index) {
      folder.configure(run(index), configuration);
      folder.write(run(index), "metrics.jsonl", all[index].record.text());
    }
  }
  static std::string run(std::size_t index) { return format("h{}", index); }
};

double loss_of(const History& history) {
  return tests::RecordText::loss(static_cast<int>(history.line), history.restart);
}

std::string frame_of(const report::WatchedRun& run, std::int64_t now_ms) {
  return report::text_of(run.frame({100, 0}, base::Glyphs::ascii, now_ms));
}

std::string step_text(const History& history) {
  if (history.step == 0) return "step        none\n";
  if (history.step > 20) return format("step        {}", history.step);
  return format("step        {}/20  {} %", history.step, 5 * history.step);
}

}  // namespace

TEST_CASE("runs are listed where they stand, whatever their history") {
  const Runs runs;
  const auto listing = base::value_or_throw(report::list_runs(runs.folder.folder()));
  REQUIRE(listing.runs.size() == runs.all.size());
  CHECK(listing.notes.empty());
  for (std::size_t index = 0; index < runs.all.size(); ++index) {
    const auto& history = runs.all[index];
    CAPTURE(history.name);
    const auto found = std::find_if(listing.runs.begin(), listing.runs.end(),
                                    [&](const auto& run) { return run.name == Runs::run(index); });
    REQUIRE(found != listing.runs.end());
    CHECK(found->step == history.step);
    CHECK(found->state == history.state);
    CHECK(std::isnan(found->loss) == (history.line == 0));
    if (history.line > 0) CHECK(found->loss == Approx(loss_of(history)));
    if (history.line > 0) CHECK(found->tokens_per_second == Approx(1000));
  }
}

TEST_CASE("comparison, page and postmortem agree with the list of runs on every history") {
  const Runs runs;
  for (std::size_t index = 0; index < runs.all.size(); ++index) {
    const auto& history = runs.all[index];
    CAPTURE(history.name);
    const auto view = runs.folder.view(Runs::run(index));
    CHECK(view.record.step == history.step);
    CHECK(view.record.repeated_steps == history.repeated);
    CHECK(view.state == history.state);
    CHECK(view.postmortem.last_step == history.step);
    CHECK(view.postmortem.last_loss.has_value() ==
          (history.line > 0 && history.line == history.step));
    const auto compared = report::comparison_json({&view, 1})["runs"][0];
    CHECK(compared["step"] == history.step);
    CHECK(compared["state"] == report::name(history.state));
    CHECK(report::page_json({&view, 1}, {})["runs"][0]["step"] == history.step);
    CHECK(holds(report::page({&view, 1}, {}), "</html>"));
    const auto* const saved = view.record.last_save();
    CHECK((saved == nullptr ? 0 : saved->step) == history.saved);
  }
}

TEST_CASE("pictures over hours never run back, though clocks do") {
  const Runs runs;
  for (std::size_t index = 0; index < runs.all.size(); ++index) {
    CAPTURE(runs.all[index].name);
    const auto view = runs.folder.view(Runs::run(index));
    const auto drawn = report::draw({&view, 1}).front();
    CHECK(std::is_sorted(drawn.at.hours.begin(), drawn.at.hours.end()));
    if (drawn.at.hours.empty()) continue;
    CHECK(drawn.at.hours.front() >= 0);
    CHECK(drawn.at.hours.back() < 0.01);
  }
}

TEST_CASE("a run that nobody holds is watched as it is listed") {
  const Runs runs;
  for (std::size_t index = 0; index < runs.all.size(); ++index) {
    const auto& history = runs.all[index];
    const auto run =
        base::value_or_throw(report::WatchedRun::open(runs.folder.path(Runs::run(index))));
    const auto text = frame_of(run, history.record.now_ms());
    CAPTURE(history.name, text);
    CHECK(run.state() == history.state);
    CHECK(holds(text, step_text(history)));
    CHECK(holds(text, format("saved       step {}", history.saved)) == (history.saved > 0));
    CHECK(holds(text, "saved") == (history.saved > 0));
    CHECK_FALSE(holds(text, "next save"));
    CHECK_FALSE(holds(text, "left"));
    if (history.line > 0) CHECK(holds(text, format("loss        {:.4f}", loss_of(history))));
  }
}

TEST_CASE("of a start that has made no step yet nothing of the one before is told") {
  const Runs runs;
  for (std::size_t index = 0; index < runs.all.size(); ++index) {
    const auto& history = runs.all[index];
    const auto path = runs.folder.path(Runs::run(index));
    runs.folder.write(Runs::run(index), "ranks.json",
                      format(R"({{"restart":{},"step":10,"steps":5,"nodes":["n01"],"node":[0,0],)"
                             R"("computing_ms":[7,8]}})",
                             history.restart));
    const auto lock = base::value_or_throw(record::RunLock::take(path, ""));
    auto run = base::value_or_throw(report::WatchedRun::open(path));
    // All lines are older than the lock: its process has written none.
    for (const bool has_begun : {false, true}) {
      if (has_begun) {
        const auto restart = history.record.text().empty() ? 0 : history.restart + 1;
        runs.folder.write(
            Runs::run(index), "metrics.jsonl",
            format("\n{{\"kind\":\"event\",\"event\":\"start\",\"step\":{},\"restart\":{},"
                   "\"time\":\"2999-01-01T00:00:00.000Z\"}}\n",
                   history.step + 1, restart + 7));
        REQUIRE(run.advance().ok());
      }
      const auto text = frame_of(run, history.record.now_ms());
      CAPTURE(history.name, has_begun, text);
      CHECK(run.state() == State::running);
      CHECK(holds(text, "the run is starting"));
      for (const auto* earlier :
           {"tok/s", "MFU", "a step", "left", "next save", "n01", "slowest"}) {
        CAPTURE(earlier);
        CHECK_FALSE(holds(text, earlier));
      }
      if (history.step > 0 && history.step < 20) {
        CHECK(holds(text,
                    format("{}/20  {} %  none yet in this start", history.step, 5 * history.step)));
      }
    }
  }
}

TEST_CASE("a start's own steps are watched from the first one on, at its own speed") {
  const tests::HandMadeRuns runs;
  runs.configure("a", configuration);
  auto record = tests::RecordText().start(1).steps(1, 12).start(11);
  // An hour passes between the starts, and the clock is set back in the second.
  record.pass(3'600'000);
  const auto lock = base::value_or_throw(record::RunLock::take(runs.path("a"), ""));
  record.append(R"({"kind":"event","event":"start","step":11,"restart":2,)"
                R"("time":"2999-01-01T00:00:00.000Z"})"
                "\n");
  for (int step = 11; step <= 16; ++step) {
    record.append(format(R"({{"kind":"train","step":{},"loss":1,"restart":2,"step_ms":500,)"
                         R"("tokens_per_second":200,"time":"2999-01-01T0{}:00:0{}.000Z"}})"
                         "\n",
                         step, step < 14 ? 3 : 1, step - 10));
  }
  runs.write("a", "metrics.jsonl", record.text());
  const auto text = frame_of(base::value_or_throw(report::WatchedRun::open(runs.path("a"))), 0);
  INFO(text);
  CHECK(holds(text, "16/20  80 %  left 3.6 s"));
  CHECK(holds(text, "tok/s       200"));
  CHECK(holds(text, "a step      900.0 ms"));
  CHECK(holds(text, "next save   step 20 (in 4 steps, about 3 s)"));
}

TEST_CASE("starts and failures stand in their order, though the clock was set back between them") {
  const tests::HandMadeRuns runs;
  const auto record = tests::RecordText()
                          .start(1)
                          .steps(1, 3)
                          .pass(-86'400'000)
                          .start(3)
                          .event("not saved", 3, R"(,"why":"disk")");
  runs.write("a", "metrics.jsonl", record.text());
  runs.write("a", "failure-1.json", R"({"cause":"the first","time":"2020-01-01T00:50:00.000Z"})");
  runs.write("a", "failure.json", R"({"cause":"the second","time":"2019-12-31T00:50:00.000Z"})");
  const auto view = runs.view("a");
  auto page = report::page({&view, 1}, {});
  page = page.substr(page.rfind("Starts and failures"));
  std::vector<std::size_t> places;
  for (const auto* row :
       {"begins with step 1", "the first", "begins with step 3", "not saved", "the second"}) {
    places.push_back(page.find(row));
    CAPTURE(row);
    CHECK(places.back() != std::string::npos);
  }
  CHECK(std::is_sorted(places.begin(), places.end()));
}
