// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/rank_trace.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <map>
#include <thread>

using namespace trireme;
using namespace trireme::telemetry;

namespace {

TraceSpan span_of(SpanKind kind, std::int64_t begin, std::int64_t end, std::int64_t number = -1) {
  TraceSpan span;
  span.kind = kind;
  span.begin = begin;
  span.end = end;
  span.place.number = number;
  return span;
}

TraceSpan with_operation(TraceSpan span, const char* operation, const char* group) {
  span.operation = operation;
  span.group = group;
  span.bytes = 4096;
  span.number = 7;
  return span;
}

/// A step of 10 us: data, a forward with a tensor-parallel collective in it, a wait of its own.
RankTrace made_trace() {
  RankTrace trace;
  trace.rank = 3;
  trace.world_size = 4;
  trace.host = "n\"1";
  trace.first_step = trace.last_step = 12;
  trace.coordinates = {{"pp", 1}, {"tp", 0}};
  trace.groups = {{"tp", {2, 3}}};
  trace.spans = {span_of(SpanKind::step, 0, 10'000, 12),
                 span_of(SpanKind::data, 0, 1'000),
                 span_of(SpanKind::forward, 2'000, 8'000),
                 span_of(SpanKind::tensor, 4'000, 6'000),
                 with_operation(span_of(SpanKind::operation, 4'100, 5'900), "all_reduce", "tp"),
                 with_operation(span_of(SpanKind::wait, 4'500, 5'900), "all_reduce", "tp"),
                 with_operation(span_of(SpanKind::operation, 4'200, 9'500), "all_gather", "tp"),
                 with_operation(span_of(SpanKind::wait, 9'000, 9'500), "all_gather", "tp")};
  trace.spans[2].place.micro_batch = 5;
  return trace;
}

std::array<std::int64_t, time_use_count> times(const RankTrace& trace) {
  std::array<std::int64_t, time_use_count> sums{};
  for (const auto& segment : segments_of(trace)) {
    sums[static_cast<std::size_t>(segment.use)] += segment.end - segment.begin;
  }
  return sums;
}

std::int64_t of(const std::array<std::int64_t, time_use_count>& sums, TimeUse use) {
  return sums[static_cast<std::size_t>(use)];
}

}  // namespace

TEST_CASE("nothing is recorded without a recorder, nor on another thread") {
  { const SpanScope scope(SpanKind::data); }
  SpanRecorder recorder;
  std::thread([] { const SpanScope scope(SpanKind::data); }).join();
  CHECK(recorder.spans().empty());
  {
    const SpanScope outer(SpanKind::forward, {.micro_batch = 2, .chunk = 1, .number = -1});
    const SpanScope inner(SpanKind::layer_forward, {.micro_batch = -1, .chunk = -1, .number = 4});
  }
  REQUIRE(recorder.spans().size() == 2);
  const auto& inner = recorder.spans()[0];
  const auto& outer = recorder.spans()[1];
  CHECK(inner.place.number == 4);
  CHECK(outer.place.micro_batch == 2);
  CHECK(outer.begin <= inner.begin);
  CHECK(inner.end <= outer.end);
}

TEST_CASE("every kind of span has a name of its own") {
  for (std::size_t index = 0; index < span_kind_count; ++index) {
    const auto kind = static_cast<SpanKind>(index);
    CHECK(span_kind(name(kind)) == kind);
  }
  CHECK_FALSE(span_kind("nothing"));
}

TEST_CASE("a moment belongs to its innermost span, and waits to what waits") {
  const auto sums = times(made_trace());
  CHECK(of(sums, TimeUse::data) == 1'000);
  CHECK(of(sums, TimeUse::compute) == 4'000);
  CHECK(of(sums, TimeUse::tensor) == 2'000);
  CHECK(of(sums, TimeUse::wait) == 500);
  CHECK(of(sums, TimeUse::rest) == 2'500);
}

TEST_CASE("all time within a save or an evaluation is its own") {
  auto trace = made_trace();
  trace.spans[0].kind = SpanKind::evaluation;
  CHECK(of(times(trace), TimeUse::evaluation) == 10'000);
}

TEST_CASE("the file of a rank says again what was recorded") {
  const auto trace = made_trace();
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / trace_file_name(trace.rank);
  base::write_file_durably(path, kineto_text(trace));
  const auto read = base::value_or_throw(read_rank_trace(path));
  CHECK(read.rank == 3);
  CHECK(read.world_size == 4);
  CHECK(read.host == trace.host);
  CHECK(read.coordinates == trace.coordinates);
  CHECK(read.groups == trace.groups);
  REQUIRE(read.spans.size() == trace.spans.size());
  CHECK(times(read) == times(trace));
  std::size_t operations = 0;
  for (const auto& span : read.spans) {
    if (span.kind == SpanKind::forward) CHECK(span.place.micro_batch == 5);
    if (span.kind != SpanKind::operation) continue;
    ++operations;
    CHECK(span.bytes == 4096);
    CHECK(span.number == 7);
    CHECK(span.group == "tp");
  }
  CHECK(operations == 2);
}

TEST_CASE("operations under way at once lie on tracks of their own") {
  const auto tracks = operation_tracks(made_trace());
  CHECK(tracks == std::vector<int>{0, 0, 0, 0, 20, 0, 21, 0});
}

TEST_CASE("computing events of a trace last as long as its computing segments") {
  const auto json = base::value_or_throw(base::parse_json(kineto_text(made_trace()), "the trace"));
  std::int64_t microseconds = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event.value("cat", "") == "kernel" && event["args"]["stream"] == 7) {
      microseconds += event["dur"].get<std::int64_t>();
    }
  }
  CHECK(microseconds == 4);
}

TEST_CASE("kernels of a trace with a GPU are the GPU's, tied to the calls and spans they are of") {
  auto trace = made_trace();
  trace.spans[2].serial = 9;
  trace.gpu_events = {{.kind = GpuEventKind::call,
                       .name = "cudaLaunchKernel",
                       .begin = 2'100,
                       .end = 2'200,
                       .correlation = 5,
                       .span = 9},
                      {.kind = GpuEventKind::kernel,
                       .name = "norm<float>",
                       .begin = 2'500,
                       .end = 3'750,
                       .device = 1,
                       .stream = 13,
                       .correlation = 5,
                       .span = 9},
                      {.kind = GpuEventKind::memory_copy,
                       .name = "Memcpy HtoD",
                       .begin = 900,
                       .end = 1'000,
                       .stream = 14,
                       .bytes = 4096}};
  const auto text = kineto_text(trace);
  const auto json = base::value_or_throw(base::parse_json(text, "the trace"));
  std::map<std::string, std::vector<base::Json>> events;
  for (const auto& event : json["traceEvents"]) events[event.value("cat", "")].push_back(event);
  REQUIRE(events["kernel"].size() == 1);
  const auto& kernel = events["kernel"][0];
  CHECK(kernel["name"] == "norm<float>");
  CHECK(kernel["ts"] == 2.5);
  CHECK(kernel["dur"] == 1.25);
  CHECK(kernel["args"]["stream"] == 13);
  CHECK(kernel["args"]["device"] == 1);
  REQUIRE(events["cuda_runtime"].size() == 1);
  CHECK(events["cuda_runtime"][0]["args"]["correlation"] == kernel["args"]["correlation"]);
  REQUIRE(events["gpu_memcpy"].size() == 1);
  CHECK(events["gpu_memcpy"][0]["args"]["bytes"] == 4096);
  std::size_t issuing = 0;
  for (const auto& event : events["cpu_op"]) {
    // No span of the host has a kernel's correlation.
    CHECK(event["args"]["correlation"] != kernel["args"]["correlation"]);
    if (event["args"].value("External id", 0) == 9) {
      ++issuing;
      CHECK(event["args"]["kind"] == "forward");
    }
  }
  CHECK(issuing == 1);
  CHECK(kernel["args"]["External id"] == 9);
  // Its spans are read back as of any other trace.
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / trace_file_name(trace.rank);
  base::write_file_durably(path, text);
  CHECK(times(base::value_or_throw(read_rank_trace(path))) == times(trace));
}

TEST_CASE("a file that is no trace is refused") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "rank-0000.json";
  for (const auto* text :
       {"", "[]", "{}", R"({"trireme": {"version": 1}})",
        R"({"trireme": {"version": 1}, "traceEvents": 3})",
        R"({"trireme": {"version": 1}, "traceEvents": [{"ts": "x", "args": {"kind": "step"}}]})"}) {
    base::write_file_durably(path, text);
    CHECK_FALSE(read_rank_trace(path));
  }
}
