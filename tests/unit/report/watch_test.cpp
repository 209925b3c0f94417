// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/watch.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/text.hpp"
#include "trireme/record/run_lock.hpp"

#include "report/watch/placement.hpp"
#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using base::Glyphs;
using report::State;
using tests::HandMadeRuns;
using tests::holds;

namespace {

/// 2026-11-21 09:38:30 UTC, a minute after the lines of hand-made steps.
constexpr std::int64_t later_ms = 1795253910000;

report::WatchedRun watched(const HandMadeRuns& runs, const std::string& run) {
  return base::value_or_throw(report::WatchedRun::open(runs.path(run)));
}

std::string shown(const report::WatchedRun& run, std::size_t columns = 100) {
  return report::text_of(run.frame({columns, 0}, Glyphs::ascii, later_ms));
}

void write_steps(const HandMadeRuns& runs, int first, int last) {
  for (int step = first; step <= last; ++step) {
    runs.step("a", step, 5 - 0.05 * step,
              ",\"step_ms\":500,\"tokens_per_second\":2000,\"mfu\":0.25,\"bubble_ms\":50,"
              "\"exposed_comm_ms\":100,\"data_ms\":1,\"stage_bubble_ms\":[50,10],\"epochs\":" +
                  base::format("{}", 0.125 * step));
  }
}

void configure(const HandMadeRuns& runs) {
  runs.configure("a",
                 "[train]\nsteps = 100\n[parallel]\npipeline = 2\ndata = 1\ntensor = 2\n"
                 "[checkpoint]\nevery_steps = 25\nevery_minutes = 0\n");
}

}  // namespace

TEST_CASE("a frame tells progress, curves, where a step's time goes, and the next save") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 30);
  runs.write("a", "metrics.jsonl",
             "{\"kind\":\"eval\",\"step\":25,\"loss\":3.9}\n"
             "{\"kind\":\"save\",\"step\":25,\"bytes\":1048576,\"stall_ms\":20}\n");
  const auto text = shown(watched(runs, "a"));
  INFO(text);
  CHECK(holds(text, "30/100  30 %  3.75 epochs"));
  CHECK(holds(text, "loss        3.5000 v      ^"));
  CHECK(holds(text, "held-out    3.9000"));
  CHECK(holds(text, "tok/s       2000"));
  CHECK(holds(text, "MFU         25.0 %"));
  // 500 ms, of which 100 and 50 and 1 are not compute.
  CHECK(holds(text, "a step      500.0 ms: compute 70 %, gradient reduction 20 %, bubble 10 %"));
  CHECK(holds(text, "stages wait 10 %, 2 %; stage 1 is the slowest"));
  CHECK(holds(text, "saved       step 25, 1.00 MiB, training stood still 20.0 ms"));
  CHECK_FALSE(holds(text, "left"));
  CHECK_FALSE(holds(text, "next save"));
}

TEST_CASE("a run is read on, and its state is that of its lock and its last event") {
  const HandMadeRuns runs;
  configure(runs);
  // Not before the lock is taken, which is now.
  runs.start("a", 1, ",\"time\":\"2999-01-01T00:00:00.000Z\"");
  auto run = watched(runs, "a");
  CHECK(holds(shown(run), "step        none"));
  {
    const auto lock = base::value_or_throw(record::RunLock::take(runs.path("a"), ""));
    REQUIRE(run.advance().ok());
    CHECK(run.state() == State::running);
    CHECK(holds(shown(run), "none yet: the run is starting"));
    write_steps(runs, 1, 10);
    REQUIRE(run.advance().ok());
    CHECK(holds(shown(run), "10/100  10 %  left 45.0 s"));
    CHECK(holds(shown(run), "next save   step 25 (in 15 steps, about 7 s)"));
    // A minute without a line, of steps that take half a second.
    CHECK(holds(shown(run), "a  running  last line 1 min ago"));
    write_steps(runs, 11, 100);
    runs.event("a", "done", 100);
  }
  REQUIRE(run.advance().ok());
  CHECK(run.state() == State::finished);
  CHECK(holds(shown(run), "100/100  100 %"));
  CHECK(holds(shown(run), "last event  done after step 100"));
  CHECK_FALSE(holds(shown(run), "next save"));
}

TEST_CASE("the next save comes by the interval that the start has chosen, where it is auto") {
  const HandMadeRuns runs;
  runs.configure("a", "[train]\nsteps = 100\n[checkpoint]\nevery_minutes = auto\n");
  runs.start("a", 1, ",\"time\":\"2999-01-01T00:00:00.000Z\"");
  const auto lock = base::value_or_throw(record::RunLock::take(runs.path("a"), ""));
  runs.write("a", "metrics.jsonl",
             "{\"kind\":\"event\",\"event\":\"save interval\",\"step\":0,\"minutes\":30}\n"
             "{\"kind\":\"save\",\"step\":1,\"time\":\"2026-11-21T09:37:20.000Z\"}\n"
             "{\"kind\":\"event\",\"event\":\"save interval\",\"step\":1,\"minutes\":0.5}\n");
  write_steps(runs, 2, 10);
  const auto text = shown(watched(runs, "a"));
  INFO(text);
  // Ten of thirty seconds have passed; the end of the run is farther.
  CHECK(holds(text, "next save   in about 20 s (checkpoint.every_minutes)"));
  CHECK_FALSE(holds(text, "last event  save interval"));
}

TEST_CASE("no line of a frame is wider than the terminal, and none is below it") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 60);
  runs.write("a", "metrics.jsonl",
             "{\"kind\":\"event\",\"event\":\"not saved\",\"step\":60,\"why\":\"" +
                 std::string(300, 'x') + "\"}\n");
  const auto run = watched(runs, "a");
  for (std::size_t columns = 1; columns < 130; columns += 3) {
    for (const auto glyphs : {Glyphs::ascii, Glyphs::unicode}) {
      const auto frame = run.frame({columns, 5}, glyphs, later_ms);
      CHECK(frame.size() <= 5);
      const auto text = report::text_of(frame);
      for (const auto line : base::split(text, '\n')) {
        CAPTURE(columns, line);
        CHECK(base::width_of(line) <= columns);
      }
    }
  }
}

TEST_CASE("nodes have their ranks and stages, and the slowest stage is marked") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 10);
  for (int rank = 0; rank < 4; ++rank) {
    runs.write("a", base::format("log/r000{}.txt", rank),
               base::format("2026-11-21T09:37:34.123Z info    r000{}/0004 n0{} train: a line\n"
                            "a line that goes on\n",
                            rank, rank < 2 ? 1 : 2));
  }
  // A log of an earlier start with more ranks.
  runs.write("a", "log/r0004.txt", "2026-11-21T09:30:34.123Z info    r0004/0008 n09 train: old\n");
  const auto text = shown(watched(runs, "a"));
  INFO(text);
  CHECK(holds(text, "nodes       n01  ranks 0-1  stages 0\n"));
  CHECK(holds(text, "            n02  ranks 2-3  stages 1  (the slowest)\n"));
  CHECK_FALSE(holds(text, "n09"));
  CHECK(report::ranges_text({0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
  CHECK(report::ranges_text({}).empty());
}

TEST_CASE("ranks stand by node with the slowest of each, and recorded times yield to newer ones") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 10);
  const std::string times =
      ",\"step\":10,\"steps\":5,\"nodes\":[\"n01\",\"n02\"],\"node\":[0,0,1,1],"
      "\"computing_ms\":[200,310.25,300,290]}\n";
  runs.write("a", "ranks.json", "{\"restart\":0" + times);
  auto run = watched(runs, "a");
  const auto text = shown(run);
  INFO(text);
  CHECK(holds(text, "nodes       n01  ranks 0-1  stages 0  slowest 1: 310.2 ms  (the slowest)\n"));
  CHECK(holds(text, "            n02  ranks 2-3  stages 1  slowest 2: 300.0 ms\n"));
  CHECK(holds(text, "a rank computes 300.0 ms of a step (median)"));
  // The first node does not answer: it stays, as recorded.
  run.show({{2, "n02", 305}, {3, "n02", 400}});
  CHECK(holds(shown(run), "n01  ranks 0-1  stages 0  slowest 1: 310.2 ms\n"));
  CHECK(holds(shown(run), "n02  ranks 2-3  stages 1  slowest 3: 400.0 ms  (the slowest)\n"));
  run.show({});
  CHECK(holds(shown(run), "n02  ranks 2-3  stages 1  slowest 2: 300.0 ms\n"));
}

TEST_CASE("times of an earlier start, and a file that holds none, are passed over") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 10);
  for (const std::string text :
       {R"({"restart":1,"step":3,"steps":1,"nodes":["n"],"node":[0],"computing_ms":[1]})",
        R"({"restart":0,"step":3,"steps":1,"nodes":["n"],"node":[1],"computing_ms":[1]})",
        R"({"restart":0})", "[]", "{"}) {
    runs.write("a", "ranks.json", text);
    CAPTURE(text);
    CHECK_FALSE(holds(shown(watched(runs, "a")), "slowest 0"));
    std::filesystem::remove(runs.path("a") / "ranks.json");
  }
}

TEST_CASE("of many nodes those with the slowest ranks are shown") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 10);
  auto run = watched(runs, "a");
  std::vector<telemetry::RankTime> times;
  for (int rank = 0; rank < 10'000; ++rank) {
    times.push_back({rank, base::format("n{:04}", rank / 8), rank == 9001 ? 250.0 : 100.0});
  }
  run.show(std::move(times));
  const auto text = shown(run);
  INFO(text);
  CHECK(holds(text, "nodes       n1125  ranks 9000-9007  slowest 9001: 250.0 ms  (the slowest)\n"));
  CHECK(holds(text, "and 1234 more nodes, none of them slower\n"));
}

TEST_CASE("processor time that other programs take is told while they take it") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  write_steps(runs, 1, 10);
  const auto measured = [&runs](double others) {
    runs.write("a", "metrics.jsonl",
               base::format("{{\"kind\":\"processors\",\"step\":3,\"node\":\"n1\",\"ranks\":1,"
                            "\"cores\":2,\"seconds\":30,\"others\":{}}}\n",
                            others));
  };
  auto run = watched(runs, "a");
  CHECK_FALSE(holds(shown(run), "processors"));
  measured(0.5);
  REQUIRE(run.advance().ok());
  CHECK(holds(shown(run), "processors  50 % of the processor time of 2 cores of rank 0 on n1"));
  measured(0.1);
  REQUIRE(run.advance().ok());
  CHECK_FALSE(holds(shown(run), "processors"));
  measured(0.5);
  runs.start("a", 11, ",\"restart\":1");
  REQUIRE(run.advance().ok());
  CHECK_FALSE(holds(shown(run), "processors"));
}

TEST_CASE("names and reasons of a run cannot move the terminal's cursor") {
  const HandMadeRuns runs;
  configure(runs);
  runs.start("a");
  runs.write("a", "metrics.jsonl",
             "{\"kind\":\"event\",\"event\":\"not saved\\u001b[2J\",\"step\":1,"
             "\"why\":\"\\u001b[31m\"}\n");
  const auto text = shown(watched(runs, "a"));
  CHECK_FALSE(holds(text, "\033"));
  CHECK(holds(text, "not saved\\x1b[2J after step 1: \\x1b[31m"));
}

TEST_CASE("what is no run directory is refused, and a torn record is none the less read") {
  const HandMadeRuns runs;
  CHECK_FALSE(report::WatchedRun::open(runs.path("nowhere")).ok());
  std::filesystem::create_directories(runs.path("empty"));
  const auto refused = report::WatchedRun::open(runs.path("empty"));
  REQUIRE_FALSE(refused.ok());
  CHECK(holds(refused.failure().text, "is no run directory"));
  configure(runs);
  runs.write("a", "metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"lo");
  CHECK(holds(shown(watched(runs, "a")), "step        none"));
}
