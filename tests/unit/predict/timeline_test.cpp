// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/timeline.hpp"

#include "trireme/base/error.hpp"
#include "trireme/predict/step.hpp"

#include "machines.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace trireme;
using namespace trireme::predict;
using Kind = TimelineSpan::Kind;

namespace {

Timeline timeline_on(const Machine& machine, const Workload& workload) {
  return base::value_or_throw(step_timeline(machine, workload));
}

bool computes(const TimelineSpan& span) {
  return span.kind < Kind::data;
}

double computed_seconds(const TimelineRow& row) {
  double sum = 0;
  for (const auto& span : row.spans) sum += computes(span) ? span.end - span.begin : 0;
  return sum;
}

int count_of(const TimelineRow& row, Kind kind) {
  return static_cast<int>(std::count_if(row.spans.begin(), row.spans.end(),
                                        [&](const auto& span) { return span.kind == kind; }));
}

/// Two stages of two layers, four micro-batches, on one node.
Workload two_stages() {
  auto workload = tests::small_workload();
  workload.degrees.pipeline = 2;
  workload.micro_batches.count = 4;
  return workload;
}

void check_lanes(const Timeline& timeline) {
  for (const auto& row : timeline.rows) {
    std::map<int, double> ends;
    for (const auto& span : row.spans) {
      CHECK(span.begin < span.end);
      CHECK(span.end <= timeline.seconds * (1 + 1e-12));
      CHECK(span.tensor <= (span.end - span.begin) * (1 + 1e-12));
      auto& end = ends[computes(span) ? 0 : static_cast<int>(span.kind)];
      // Messages to both neighbours have a link each.
      if (span.kind != Kind::message) CHECK(span.begin >= end);
      end = span.end;
    }
  }
}

}  // namespace

TEST_CASE("one stage computes its micro-batches one after the other, and nothing waits") {
  auto workload = tests::small_workload();
  workload.micro_batches.count = 3;
  const auto machine = tests::plain_machine();
  const auto timeline = timeline_on(machine, workload);
  const auto step = base::value_or_throw(predict_step(machine, workload));
  CHECK(timeline.seconds == seconds_of(step.total()));
  REQUIRE(timeline.rows.size() == 1);
  const auto& row = timeline.rows[0];
  CHECK(row.alike == 1);
  CHECK(count_of(row, Kind::forward) == 3);
  CHECK(count_of(row, Kind::backward) == 3);
  CHECK(count_of(row, Kind::update) == 1);
  CHECK(count_of(row, Kind::message) == 0);
  CHECK(computed_seconds(row) == Approx(timeline.seconds));
  check_lanes(timeline);
}

TEST_CASE("two stages exchange messages that the next stage's computation waits for") {
  const auto machine = tests::plain_machine();
  const auto timeline = timeline_on(machine, two_stages());
  REQUIRE(timeline.rows.size() == 2);
  const auto& first = timeline.rows[0];
  const auto& second = timeline.rows[1];
  CHECK(first.stage == 0);
  CHECK(second.stage == 1);
  CHECK(count_of(first, Kind::message) == 4);
  CHECK(count_of(second, Kind::message) == 4);
  check_lanes(timeline);
  // The first message's end is the second stage's begin, and the last one's the end of the first
  // stage's wait.
  const auto message = std::find_if(first.spans.begin(), first.spans.end(),
                                    [](const auto& span) { return span.kind == Kind::message; });
  const auto forward = std::find_if(second.spans.begin(), second.spans.end(), computes);
  CHECK(forward->begin == message->end);
  CHECK(message->micro_batch == 0);
  CHECK(forward->micro_batch == 0);
  const auto step = base::value_or_throw(predict_step(machine, two_stages()));
  const auto& parts = step.of_first_rank;
  CHECK(computed_seconds(first) ==
        Approx(seconds_of(parts[Part::compute] + parts[Part::tensor] + parts[Part::optimizer])));
}

TEST_CASE("rows of equal ranks stand for all of them, and collectives are within the step") {
  auto workload = tests::large_workload();
  workload.micro_batches.count = 16;
  auto machine = tests::plain_machine();
  machine.node.gpus = 8;
  const auto timeline = timeline_on(machine, workload);
  int ranks = 0;
  for (const auto& row : timeline.rows) {
    ranks += row.alike;
    CHECK(count_of(row, Kind::data) > 0);
    CHECK(std::any_of(row.spans.begin(), row.spans.end(),
                      [](const auto& span) { return span.tensor > 0; }));
  }
  CHECK(ranks == workload.degrees.world_size());
  CHECK(timeline.rows.size() < 64);
  check_lanes(timeline);
}

TEST_CASE("ranks that share cores are rows of their own, and one core runs one at a time") {
  auto machine = tests::plain_machine();
  machine.node.gpus = 0;
  machine.node.cores = 1;
  const auto timeline = timeline_on(machine, two_stages());
  REQUIRE(timeline.rows.size() == 2);
  std::vector<TimelineSpan> all;
  for (const auto& row : timeline.rows) {
    std::copy_if(row.spans.begin(), row.spans.end(), std::back_inserter(all), computes);
  }
  std::sort(all.begin(), all.end(),
            [](const auto& one, const auto& other) { return one.begin < other.begin; });
  for (std::size_t at = 1; at < all.size(); ++at) CHECK(all[at].begin >= all[at - 1].end);
}
