// SPDX-License-Identifier: Apache-2.0
#include "track/spans.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using telemetry::RankTrace;
using telemetry::SpanKind;
using telemetry::TraceSpan;
using track::ActivityKind;

namespace {

track::RunFacts made_run() {
  track::RunFacts run;
  run.id = "0a1b2c3d";
  run.name = std::string("a");
  run.jobs = {{1, "4711"}};
  return run;
}

TraceSpan span(SpanKind kind, std::int64_t begin, std::int64_t end, std::int64_t number = -1) {
  TraceSpan made;
  made.kind = kind;
  made.begin = begin;
  made.end = end;
  made.place.number = number;
  return made;
}

/// Two steps with an evaluation between them; an operation that ends behind what has begun it.
RankTrace made_trace() {
  RankTrace trace;
  trace.rank = 3;
  trace.origin_unix_ns = 1'000'000;
  trace.first_step = 7;
  trace.last_step = 8;
  trace.spans = {span(SpanKind::step, 0, 100, 7),         span(SpanKind::forward, 10, 50),
                 span(SpanKind::operation, 20, 80),       span(SpanKind::layer_forward, 30, 40, 2),
                 span(SpanKind::backward, 60, 90),        span(SpanKind::evaluation, 100, 120),
                 span(SpanKind::layer_forward, 105, 110), span(SpanKind::step, 130, 200, 8)};
  trace.spans[2].operation = "all_reduce";
  return trace;
}

std::vector<std::size_t> parents_of(const std::vector<track::Span>& spans) {
  std::vector<std::size_t> parents;
  for (const auto& each : spans) {
    std::size_t at = 0;
    while (at < spans.size() && spans[at].span_id != each.parent_id) ++at;
    parents.push_back(at);
  }
  return parents;
}

}  // namespace

TEST_CASE("a span's parent is the innermost one of the thread, whatever is under way beside it") {
  const auto run = made_run();
  const auto trace = made_trace();
  const auto spans = track::RankSpans(run, trace).next(100);
  REQUIRE(spans.size() == 8);
  // 8: none of the rank, but the step of the record.
  CHECK(parents_of(spans) == std::vector<std::size_t>{8, 0, 1, 1, 0, 8, 5, 8});
  CHECK(spans[0].trace_id == spans[6].trace_id);
  CHECK(spans[0].trace_id != spans[7].trace_id);
  CHECK(spans[2].name == "collective.all_reduce");
  CHECK(spans[3].begin_ns == 1'000'030);
  CHECK(spans[3].end_ns == 1'000'040);
}

TEST_CASE("spans come block by block, with ids that are their own and the same each time") {
  const auto run = made_run();
  const auto trace = made_trace();
  const auto whole = track::RankSpans(run, trace).next(100);
  track::RankSpans blocks(run, trace);
  std::set<std::string> ids;
  for (auto block = blocks.next(3); !block.empty(); block = blocks.next(3)) {
    CHECK(block.size() <= 3);
    for (const auto& each : block) {
      CHECK(each.span_id == whole[ids.size()].span_id);
      CHECK(each.parent_id == whole[ids.size()].parent_id);
      CHECK(ids.insert(each.span_id).second);
    }
  }
  CHECK(ids.size() == whole.size());
  auto other = made_trace();
  other.rank = 4;
  for (const auto& each : track::RankSpans(run, other).next(100)) {
    CHECK(ids.insert(each.span_id).second);
  }
  // Steps that a run has made and recorded again.
  other.origin_unix_ns = 2'000'000;
  for (const auto& each : track::RankSpans(run, other).next(100)) {
    CHECK(ids.insert(each.span_id).second);
  }
}

TEST_CASE("a rank's spans hang below the step of the record") {
  const auto run = made_run();
  track::Row row{7, 1, {}, {{ActivityKind::step, 7, 0, 5, 9}, {ActivityKind::save, 7, 0, 6, 8}}};
  const auto spans = track::spans_of(run, row);
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].parent_id.empty());
  CHECK(spans[1].parent_id == spans[0].span_id);
  const auto trace = made_trace();
  const auto of_rank = track::RankSpans(run, trace).next(1);
  CHECK(of_rank[0].parent_id == spans[0].span_id);
  CHECK(of_rank[0].trace_id == spans[0].trace_id);
}

TEST_CASE("two saves of a step, and loads of several starts, are spans of their own") {
  const auto run = made_run();
  track::Row row{7,
                 1,
                 {},
                 {{ActivityKind::save, 7, 0, 1, 2},
                  {ActivityKind::save, 7, 0, 1, 3},
                  {ActivityKind::load, 4, 1, 1, 2},
                  {ActivityKind::load, 4, 2, 1, 2}}};
  std::set<std::string> ids;
  for (const auto& each : track::spans_of(run, row)) CHECK(ids.insert(each.span_id).second);
}

TEST_CASE("the run's id is Slurm's number where there is one") {
  const auto id_at = [](std::int64_t restart) {
    for (const auto& [key, value] : track::resource_of(made_run(), restart)) {
      if (key == "run.id") return value.get<std::string>();
    }
    return std::string();
  };
  CHECK(id_at(0) == "0a1b2c3d");
  CHECK(id_at(1) == "4711");
}
