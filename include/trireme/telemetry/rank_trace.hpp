// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/telemetry/gpu_event.hpp"
#include "trireme/telemetry/spans.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// The trace of a rank over a few steps: a file that Kineto's readers (HolisticTraceAnalysis,
/// TensorBoard, Perfetto) open and that `trireme trace` reads back.
namespace trireme::telemetry {

/// A span in nanoseconds since the trace's origin, by the clock of rank 0.
struct TraceSpan {
  SpanKind kind = SpanKind::step;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  SpanPlace place;
  // Operation of kinds `operation` and `wait`.
  std::string operation;
  std::string group;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  int peer = -1;
  int tag = -1;
  /// By which GPU events name the span that they were issued in; 0: none.
  std::uint64_t serial = 0;
};

struct RankTrace {
  int rank = 0;
  int world_size = 1;
  std::string host;
  /// Slurm's job number; empty outside of one.
  std::string job;
  /// Time of day at the origin by rank 0's clock, in nanoseconds since 1970; 0 in traces of older
  /// versions.
  std::int64_t origin_unix_ns = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  /// Place on each axis, by short name: {"pp": 0}.
  std::map<std::string, int> coordinates;
  /// Largest error of this rank's times against rank 0's clock: those of the exchanges between the
  /// two (comm/clock_offset.hpp), added up.
  std::int64_t clock_error_ns = 0;
  /// Spans that there was no room for.
  std::uint64_t left_out = 0;
  /// World ranks of each process group that has operations in it.
  std::map<std::string, std::vector<int>> groups;
  /// In the order of their begins, the outer one first.
  std::vector<TraceSpan> spans;
  /// Work of the rank's GPU; empty where that is not known. Not read back.
  std::vector<GpuEvent> gpu_events;
};

/// The recorder's spans in `trace`, whose other members are the caller's; `since_origin` gives
/// nanoseconds of rank 0's clock.
void take_spans(const SpanRecorder& recorder,
                const std::function<std::int64_t(SpanClock::time_point)>& since_origin,
                RankTrace& trace);

/// Uses of the time of a rank's thread. Waits inside of `tensor`, `gradients` and `bubble` are
/// theirs; all within a save or an evaluation is its.
enum class TimeUse { compute, tensor, gradients, bubble, wait, data, save, evaluation, rest };
inline constexpr std::size_t time_use_count = static_cast<std::size_t>(TimeUse::rest) + 1;
/// "compute", "tensor-parallel".
std::string_view name(TimeUse use);

/// A part of a thread's time with one use, all of it in one innermost span.
struct Segment {
  TimeUse use = TimeUse::rest;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Index of the innermost span.
  std::size_t span = 0;
};
/// The thread's time, in order: each moment that a span covers is in one segment.
std::vector<Segment> segments_of(const RankTrace& trace);

/// Time of an event in whole microseconds; begins and ends are rounded alike.
inline std::int64_t event_microseconds(std::int64_t nanoseconds) {
  return std::llround(static_cast<double>(nanoseconds) / 1e3);
}

/// [span]: track of an operation, 0 of other spans. Operations under way at once have tracks of
/// their own: events of one track must nest.
std::vector<int> operation_tracks(const RankTrace& trace);

/// Name of a rank's file: "rank-0003.json".
std::string trace_file_name(int rank);
/// Text of the file, in Kineto's JSON. Segments that compute and operations are events of category
/// `kernel`, in whole microseconds; streams 7 and from 20 on.
std::string kineto_text(const RankTrace& trace);
/// Its events alone, each with a comma and a line end behind it.
std::string kineto_events(const RankTrace& trace);
/// Reads such a file as untrusted input (usage).
base::Result<RankTrace> read_rank_trace(const std::filesystem::path& file);
/// Everything but the spans, from the begin of a file that kineto_text() has made (usage).
base::Result<RankTrace> read_rank_trace_header(const std::filesystem::path& file);

}  // namespace trireme::telemetry
