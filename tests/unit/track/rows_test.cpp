// SPDX-License-Identifier: Apache-2.0
#include "track/rows.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "unit/report/histories.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace trireme;
using telemetry::RunRecord;
using track::Cursor;
using track::Row;

namespace {

void add_step(RunRecord& record, int step, const std::string& more = ",\"loss\":2") {
  record.take(
      base::format("{{\"kind\":\"train\",\"step\":{},\"time\":\"2026-11-21T09:00:{:02}.000Z\"{}}}",
                   step, step, more));
}
void add_evaluation(RunRecord& record, int step) {
  record.take(base::format("{{\"kind\":\"eval\",\"step\":{},\"loss\":0}}", step));
}
void add_save(RunRecord& record, int step, int bytes = 8) {
  record.take(base::format("{{\"kind\":\"save\",\"step\":{},\"bytes\":{}}}", step, bytes));
}

std::map<std::string, double> named(const Row& row) {
  std::map<std::string, double> numbers;
  for (const auto& point : row.points) {
    CHECK(numbers.emplace(track::metrics()[point.metric].name, point.value).second);
  }
  return numbers;
}

/// Sends what there is, as Sync does.
std::vector<Row> send(const RunRecord& record, Cursor& cursor, bool last_too) {
  auto rows = track::rows_behind(record, cursor, last_too);
  for (const auto& row : rows) cursor = track::behind(cursor, record, row);
  return rows;
}

std::vector<std::int64_t> steps_of(const std::vector<Row>& rows) {
  std::vector<std::int64_t> steps;
  for (const auto& row : rows) steps.push_back(row.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a row has the step's numbers, its evaluation and its save") {
  RunRecord record;
  add_step(record, 1, ",\"loss\":2,\"step_ms\":250,\"tokens\":4096,\"mfu\":\"nan\"");
  add_evaluation(record, 1);
  add_save(record, 1, 5);
  add_save(record, 1, 7);
  const auto rows = track::rows_behind(record, {}, true);
  REQUIRE(rows.size() == 1);
  CHECK(rows.front().time_ms == 1795251601000);
  CHECK(named(rows.front()) == std::map<std::string, double>{{"train/step", 1},
                                                             {"train/loss", 2},
                                                             {"speed/step_ms", 250},
                                                             {"train/tokens", 4096},
                                                             {"eval/loss", 0},
                                                             {"eval/perplexity", 1},
                                                             {"save/bytes", 7}});
}

TEST_CASE("every time that a step tells is sent") {
  RunRecord record;
  std::map<std::string, double> expected{{"train/step", 1}, {"speed/step_ms", 900}};
  std::string line = ",\"step_ms\":900";
  double time = 10;
  for (const auto* const name : {"exposed_comm_ms", "tensor_comm_ms", "bubble_ms", "data_ms",
                                 "parameters_ms", "reduction_ms", "optimizer_ms"}) {
    line += base::format(",\"{}\":{}", name, ++time);
    expected.emplace(base::format("time/{}", name), time);
  }
  add_step(record, 1, line);
  const auto rows = track::rows_behind(record, {}, true);
  REQUIRE(rows.size() == 1);
  CHECK(named(rows.front()) == expected);
}

TEST_CASE("the last step waits until another line tells that nothing more belongs to it") {
  RunRecord record;
  Cursor cursor;
  add_step(record, 1);
  add_step(record, 2);
  CHECK(steps_of(send(record, cursor, false)) == Steps{1});
  CHECK(send(record, cursor, false).empty());
  add_evaluation(record, 2);
  add_step(record, 3);
  const auto rows = send(record, cursor, false);
  CHECK(steps_of(rows) == Steps{2});
  CHECK(named(rows.front()).count("eval/loss") == 1);
  CHECK(steps_of(send(record, cursor, true)) == Steps{3});
  CHECK(send(record, cursor, true).empty());
}

TEST_CASE("what comes after its step was sent has a row of its own, once") {
  RunRecord record;
  Cursor cursor;
  for (int step = 1; step <= 4; ++step) add_step(record, step);
  CHECK(send(record, cursor, true).size() == 4);
  // A save that was written beside training, and an evaluation that a stop had interrupted.
  add_save(record, 2);
  add_evaluation(record, 4);
  const auto rows = send(record, cursor, true);
  CHECK(steps_of(rows) == Steps{2, 4});
  CHECK(named(rows.front()) == std::map<std::string, double>{{"save/bytes", 8}});
  CHECK(rows.front().time_ms == 1795251602000);
  CHECK(send(record, cursor, true).empty());
}

TEST_CASE("steps that a later start makes again are not sent again") {
  RunRecord record;
  Cursor cursor;
  for (int step = 1; step <= 6; ++step) add_step(record, step);
  add_save(record, 3);
  CHECK(send(record, cursor, true).size() == 6);
  record.take(R"({"kind":"event","event":"start","step":4})");
  CHECK(send(record, cursor, true).empty());
  for (int step = 4; step <= 8; ++step) add_step(record, step);
  CHECK(steps_of(send(record, cursor, true)) == Steps{7, 8});
}

TEST_CASE("of every history rows end where the run stands, and the steps that follow are sent") {
  for (const auto& history : tests::histories()) {
    CAPTURE(history.name);
    RunRecord record;
    for (const auto line : base::split(history.record.text(), '\n')) record.take(line);
    Cursor cursor;
    const auto rows = send(record, cursor, true);
    CHECK((rows.empty() ? 0 : rows.back().step) == std::max(history.line, history.saved));
    CHECK(std::is_sorted(rows.begin(), rows.end(),
                         [](const Row& one, const Row& other) { return one.step < other.step; }));
    CHECK(send(record, cursor, true).empty());
    const int next = static_cast<int>(history.step) + 1;
    add_step(record, next);
    add_save(record, next, 3);
    const auto more = send(record, cursor, true);
    CHECK(steps_of(more) == Steps{next});
    CHECK(named(more.front()).at("save/bytes") == 3);
  }
}

TEST_CASE("metrics keep the order that files of trackers have always had") {
  std::vector<std::string> names;
  for (const auto& metric : track::metrics()) names.push_back(metric.name);
  CHECK(names == std::vector<std::string>{"train/loss",          "train/grad_norm",
                                          "train/learning_rate", "train/tokens",
                                          "speed/step_ms",       "speed/tokens_per_second",
                                          "speed/mfu",           "time/exposed_comm_ms",
                                          "time/tensor_comm_ms", "time/bubble_ms",
                                          "time/data_ms",        "time/parameters_ms",
                                          "time/reduction_ms",   "time/optimizer_ms",
                                          "speed/predicted_ms",  "train/step",
                                          "eval/loss",           "eval/perplexity",
                                          "save/bytes",          "save/stall_ms",
                                          "save/write_ms"});
}

TEST_CASE("names of metrics are unique, and those of Prometheus are in base units") {
  std::set<std::string> names;
  std::set<std::string> expositions;
  for (const auto& metric : track::metrics()) {
    const std::string exposition = metric.exposition;
    CHECK(names.insert(metric.name).second);
    CHECK(expositions.insert(exposition).second);
    CHECK(exposition.starts_with("trireme_"));
    CHECK(exposition.ends_with("_total") == metric.is_counter);
    CHECK((std::string(metric.name).ends_with("_ms")) == exposition.ends_with("_seconds"));
  }
}

TEST_CASE("activities end at the time of their line, and parts of a step lie at its ends") {
  RunRecord record;
  add_step(record, 1, ",\"step_ms\":250.5,\"data_ms\":0.5,\"optimizer_ms\":20,\"restart\":2");
  add_step(record, 2, ",\"step_ms\":\"nan\",\"data_ms\":1");
  add_step(record, 3, ",\"step_ms\":-1");
  const auto rows = track::rows_behind(record, {}, true);
  REQUIRE(rows.size() == 3);
  constexpr std::int64_t end = 1'795'251'601'000'000'000;
  CHECK(rows[0].activities ==
        std::vector<track::Activity>{
            {track::ActivityKind::step, 1, 2, end - 250'500'000, end},
            {track::ActivityKind::update, 1, 2, end - 20'000'000, end},
            {track::ActivityKind::data, 1, 2, end - 250'500'000, end - 250'000'000}});
  CHECK(rows[1].activities.empty());
  CHECK(rows[2].activities.empty());
}

TEST_CASE("a load is sent with the next row, once, also when its start makes no new step") {
  RunRecord record;
  Cursor cursor;
  for (int step = 1; step <= 6; ++step) add_step(record, step);
  CHECK(send(record, cursor, true).size() == 6);
  for (const int restart : {1, 2}) {
    record.take(
        base::format("{{\"kind\":\"load\",\"step\":4,\"seconds\":2,\"restart\":{},"
                     "\"time\":\"2026-11-21T09:01:00.000Z\"}}",
                     restart));
  }
  CHECK(send(record, cursor, true).empty());
  for (int step = 7; step <= 8; ++step) add_step(record, step);
  const auto rows = send(record, cursor, true);
  REQUIRE(rows.size() == 2);
  REQUIRE(rows[0].activities.size() == 2);
  CHECK(rows[0].activities[1].restart == 2);
  CHECK(rows[0].activities[1].end_ns - rows[0].activities[1].begin_ns == 2'000'000'000);
  CHECK(rows[1].activities.empty());
  add_step(record, 9);
  CHECK(send(record, cursor, true)[0].activities.empty());
}

TEST_CASE("rows that are noted are the same when they are read back") {
  RunRecord record;
  for (int step = 1; step <= 3; ++step) {
    add_step(record, step,
             ",\"loss\":2.345678901234567,\"tokens\":9007199254740991,\"step_ms\":7.25");
  }
  add_evaluation(record, 2);
  add_save(record, 3);
  const auto rows = track::rows_behind(record, {}, true);
  REQUIRE(rows.size() == 3);
  const auto text = track::to_json(rows).dump();
  const auto again = track::rows_from(base::value_or_throw(base::parse_json(text, "note")));
  REQUIRE(again.size() == rows.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    CHECK(again[at].step == rows[at].step);
    CHECK(again[at].time_ms == rows[at].time_ms);
    CHECK_FALSE(rows[at].activities.empty());
    CHECK(again[at].activities == rows[at].activities);
    REQUIRE(again[at].points.size() == rows[at].points.size());
    for (std::size_t point = 0; point < rows[at].points.size(); ++point) {
      CHECK(again[at].points[point].metric == rows[at].points[point].metric);
      CHECK(again[at].points[point].value == rows[at].points[point].value);
    }
  }
  // The row of what is no point is left: it was sent.
  const auto odd = track::rows_from(
      base::Json::parse(R"([1,{"step":2},{"points":[["no/such",1],["train/loss"],3]}])"));
  REQUIRE(odd.size() == 2);
  CHECK(odd[1].points.empty());
}
