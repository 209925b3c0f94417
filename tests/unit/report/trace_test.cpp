// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/trace.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <regex>
#include <tuple>

using namespace trireme;
using namespace trireme::report;
using telemetry::RankTrace;
using telemetry::SpanKind;
using telemetry::TimeUse;
using telemetry::TraceSpan;

namespace {

TraceSpan span_of(SpanKind kind, std::int64_t begin_ms, std::int64_t end_ms) {
  TraceSpan span;
  span.kind = kind;
  span.begin = begin_ms * 1'000'000;
  span.end = end_ms * 1'000'000;
  return span;
}

TraceSpan message(const char* name, int peer, std::int64_t begin_ms, std::int64_t end_ms) {
  auto span = span_of(SpanKind::operation, begin_ms, end_ms);
  span.operation = name;
  span.group = "pp";
  span.peer = peer;
  span.tag = 0;
  span.bytes = 1024;
  return span;
}

/// Two stages: the second waits 40 ms of 100 for the first, and its receive is under way meanwhile.
RunTrace made_trace() {
  RankTrace first;
  first.world_size = 2;
  first.host = "n1";
  first.first_step = first.last_step = 7;
  first.coordinates = {{"pp", 0}};
  first.groups = {{"pp", {0, 1}}};
  first.spans = {span_of(SpanKind::step, 0, 100), span_of(SpanKind::forward, 0, 40),
                 message("send", 1, 38, 48), span_of(SpanKind::backward, 40, 90)};
  first.spans[0].place.number = 7;
  auto second = first;
  second.rank = 1;
  second.coordinates = {{"pp", 1}};
  second.spans = {span_of(SpanKind::step, 0, 100), span_of(SpanKind::forward, 0, 100),
                  message("receive", 0, 0, 50), span_of(SpanKind::bubble, 5, 45)};
  second.spans[0].place.number = 7;
  return {"runs/a/trace/steps-7-7", {7, 7}, {first, second}};
}

void write_run(const std::filesystem::path& run, const RunTrace& trace) {
  const auto folder =
      run / "trace" /
      ("steps-" + std::to_string(trace.steps.first) + "-" + std::to_string(trace.steps.last));
  std::filesystem::create_directories(folder);
  for (const auto& rank : trace.ranks) {
    base::write_file_durably(folder / telemetry::trace_file_name(rank.rank),
                             telemetry::kineto_text(rank));
  }
}

/// Square pixels of the path with this fill.
double area_of(const std::string& svg, const std::string& fill) {
  const auto begin = svg.find("<path fill=\"" + fill + "\"");
  if (begin == std::string::npos) return 0;
  const auto path = svg.substr(begin, svg.find("/>", begin) - begin);
  static const std::regex rectangle("h([0-9.]+)v([0-9.]+)h-");
  double area = 0;
  for (std::sregex_iterator at(path.begin(), path.end(), rectangle); at != std::sregex_iterator();
       ++at) {
    area += std::stod((*at)[1]) * std::stod((*at)[2]);
  }
  return area;
}

}  // namespace

TEST_CASE("the uses of a rank's time add up to its steps") {
  for (const auto& rank : made_trace().ranks) {
    const auto breakdown = breakdown_of(rank);
    double sum = 0;
    for (const double use : breakdown.uses) sum += use;
    CHECK(sum == Approx(0.1));
    CHECK(breakdown.wall == Approx(0.1));
  }
}

TEST_CASE("communication is hidden while the rank computes, and not while it waits") {
  const auto trace = made_trace();
  const auto first = breakdown_of(trace.ranks[0]);
  CHECK(first.of(TimeUse::compute) == Approx(0.09));
  CHECK(first.of(TimeUse::rest) == Approx(0.01));
  CHECK(first.overlap() == Approx(1.0));
  const auto second = breakdown_of(trace.ranks[1]);
  CHECK(second.of(TimeUse::bubble) == Approx(0.04));
  CHECK(second.communication == Approx(0.05));
  CHECK(second.hidden == Approx(0.01));
}

TEST_CASE("operations under way at once count once as communication") {
  auto trace = made_trace();
  trace.ranks[1].spans.insert(trace.ranks[1].spans.begin() + 3, message("receive", 0, 2, 30));
  CHECK(breakdown_of(trace.ranks[1]).communication == Approx(0.05));
  CHECK(breakdown_of(trace.ranks[1]).hidden == Approx(0.01));
}

TEST_CASE("an arrow goes from each send to its receive") {
  const auto json = base::value_or_throw(base::parse_json(perfetto_text(made_trace()), "merged"));
  std::vector<base::Json> ends;
  for (const auto& event : json["traceEvents"]) {
    if (event.value("cat", "") == "message") ends.push_back(event);
  }
  REQUIRE(ends.size() == 2);
  CHECK(ends[0]["ph"] == "s");
  CHECK(ends[0]["pid"] == 0);
  CHECK(ends[0]["ts"] == 38'000);
  CHECK(ends[1]["ph"] == "f");
  CHECK(ends[1]["pid"] == 1);
  CHECK(ends[1]["ts"] == 49'999);
  CHECK(ends[0]["id"] == ends[1]["id"]);
}

TEST_CASE("the tables tell ranks, and the operations that they wait for") {
  const auto text = trace_text(made_trace());
  CHECK(text.find("steps 7 of 2 ranks: 100.0 ms a step") != std::string::npos);
  CHECK(text.find("40.0 %") != std::string::npos);
  CHECK(text.find("receive") != std::string::npos);
  CHECK(text.find("optimizer") == std::string::npos);
}

TEST_CASE("the picture has a row for each rank, and no text of others becomes markup") {
  auto trace = made_trace();
  trace.folder = "runs/<b>/trace/steps-7-7";
  const auto svg = trace_svg(trace);
  CHECK(svg.find("rank 0 pp0") != std::string::npos);
  CHECK(svg.find("rank 1 pp1") != std::string::npos);
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK(svg.find("step 7") != std::string::npos);
}

TEST_CASE("areas of the picture are times, however short the spans are") {
  auto trace = made_trace();
  auto& spans = trace.ranks.front().spans;
  spans = {span_of(SpanKind::step, 0, 100)};
  // 14 of every 20 microseconds, a quarter of a column, are tensor-parallel, and 5 forward.
  for (std::int64_t at = 0; at < 100'000'000; at += 20'000) {
    for (const auto& [kind, begin, end] : {std::tuple(SpanKind::tensor, 0, 14'000),
                                           std::tuple(SpanKind::layer_forward, 14'000, 19'000)}) {
      spans.push_back(span_of(kind, 0, 0));
      spans.back().begin = at + begin;
      spans.back().end = at + end;
    }
  }
  trace.ranks.resize(1);
  const auto svg = trace_svg(trace);
  const double whole = 1200 * 20;
  CHECK(area_of(svg, "#fdae6b") / whole == Approx(0.70).margin(0.03));
  CHECK(area_of(svg, "#6baed6") / whole == Approx(0.25).margin(0.03));
  CHECK(area_of(svg, "#31a354") == 0);
}

TEST_CASE("a run's newest trace is read, or the one that is asked for") {
  const tests::TemporaryFolder folder;
  CHECK_FALSE(read_trace(folder.path(), {}));
  auto trace = made_trace();
  write_run(folder.path(), trace);
  std::filesystem::create_directories(folder.path() / "trace/steps-9-9.partial");
  const auto read = base::value_or_throw(read_trace(folder.path(), {}));
  CHECK(read.steps == config::StepRange{7, 7});
  CHECK(read.ranks.size() == 2);
  CHECK(base::value_or_throw(read_trace(folder.path(), config::StepRange{7, 7})).ranks.size() == 2);
  const auto other = read_trace(folder.path(), config::StepRange{8, 9});
  REQUIRE_FALSE(other);
  CHECK(other.failure().text.find("there are 7") != std::string::npos);
}
