// SPDX-License-Identifier: Apache-2.0
// Writes the trace of a rank as Kineto's JSON.
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/telemetry/rank_trace.hpp"
#include "trireme/telemetry/span_text.hpp"

#include "telemetry/kineto_layout.hpp"

#include <algorithm>
#include <set>

namespace trireme::telemetry {
namespace {

using base::format;
using base::Json;

constexpr int thread_track = 1;
constexpr int call_track = 2;
constexpr int compute_stream = 7;
constexpr int first_operation_track = 20;
/// Behind the tracks of operations under way at once.
constexpr int first_gpu_track = 10'000;
/// Spans of the host have their index as correlation, from 1.
constexpr std::uint64_t first_gpu_correlation = std::uint64_t{1} << 32;

std::string microseconds(std::int64_t nanoseconds) {
  return format("{:.3f}", static_cast<double>(nanoseconds) / 1e3);
}

std::string quoted(const std::string& text) {
  return base::json_text(Json(text));
}

std::string event_name(const TraceSpan& span) {
  if (span.operation.empty()) return span_text(span.kind, span.place);
  return format("{}: {}", name(span.kind), span.operation);
}

/// Fields that the reader takes back.
std::string own_fields(const TraceSpan& span) {
  std::string text = format("\"kind\":\"{}\"", name(span.kind));
  const auto add = [&text](const char* key, std::int64_t value) {
    if (value >= 0) text += format(",\"{}\":{}", key, value);
  };
  add("number", span.place.number);
  add("micro_batch", span.place.micro_batch);
  add("chunk", span.place.chunk);
  if (span.serial != 0) text += format(",\"External id\":{}", span.serial);
  if (span.operation.empty()) return text;
  text += format(",\"operation\":{},\"group\":{},\"bytes\":{},\"seq\":{}", quoted(span.operation),
                 quoted(span.group), span.bytes, span.number);
  add("peer", span.peer);
  add("tag", span.tag);
  return text;
}

const char* category(GpuEventKind kind) {
  switch (kind) {
    case GpuEventKind::kernel:
      return "kernel";
    case GpuEventKind::memory_copy:
      return "gpu_memcpy";
    case GpuEventKind::memory_set:
      return "gpu_memset";
    case GpuEventKind::call:
      break;
  }
  return "cuda_runtime";
}

class Writer {
 public:
  explicit Writer(const RankTrace& trace) : trace_(trace) {}

  std::string events() {
    text_ = format(
        "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"tid\":0,\"args\":{{"
        "\"name\":{}}}}},\n",
        trace_.rank, quoted(format("rank {} on {}", trace_.rank, trace_.host)));
    track(thread_track, "thread");
    for (std::size_t index = 0; index < trace_.spans.size(); ++index) {
      if (trace_.spans[index].kind != SpanKind::operation) thread_span(index);
    }
    if (has_gpu()) {
      gpu_tracks();
      for (const auto& event : trace_.gpu_events) gpu_event(event);
    } else {
      track(compute_stream, "compute");
      for (const auto& segment : segments_of(trace_)) compute(segment);
    }
    operations();
    return std::move(text_);
  }

  std::string header() const {
    Json groups = Json::array();
    for (const auto& [group, ranks] : trace_.groups) {
      groups.push_back({{"pg_name", group}, {"ranks", ranks}});
    }
    const Json own{{"version", 1},
                   {"host", trace_.host},
                   {"job", trace_.job},
                   {"origin_unix_ns", trace_.origin_unix_ns},
                   {"first_step", trace_.first_step},
                   {"last_step", trace_.last_step},
                   {"coordinates", trace_.coordinates},
                   {"clock_error_ns", trace_.clock_error_ns},
                   {"left_out", trace_.left_out}};
    // A blank stands before each number: readers look for "rank": 3.
    return format(
        "{{\n\"schemaVersion\": 1,\n\"distributedInfo\": {{\"backend\": \"trireme\", \"rank\": {}, "
        "\"world_size\": {}, \"pg_config\": {}}},\n\"deviceProperties\": [],\n\"displayTimeUnit\": "
        "\"ms\",\n\"trireme\": {},\n{}",
        trace_.rank, trace_.world_size, base::json_text(groups), base::json_text(own),
        kineto_events_key);
  }

 private:
  /// Events of a GPU are the kernels of its trace: none are made of what the host did.
  bool has_gpu() const { return !trace_.gpu_events.empty(); }

  void track(int track, const std::string& words) {
    text_ += format(
        "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{"
        "\"name\":{}}}}},\n",
        trace_.rank, track, quoted(words));
  }

  void thread_span(std::size_t index) {
    const auto& span = trace_.spans[index];
    text_ += format(
        "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{{},\"correlation\":{}}}}},\n",
        span.kind == SpanKind::step ? "user_annotation" : "cpu_op", quoted(event_name(span)),
        trace_.rank, thread_track, microseconds(span.begin), microseconds(span.end - span.begin),
        own_fields(span), index + 1);
  }

  /// Begin and end are rounded alike, so that neighbours still meet and no time is lost.
  void kernel(const std::string& name, int stream, std::int64_t begin, std::int64_t end,
              std::size_t launched_in, const std::string& fields) {
    const auto first = event_microseconds(begin);
    text_ += format(
        "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{\"stream\":{},\"correlation\":{}{}}}}},\n",
        has_gpu() ? "cpu_op" : "kernel", quoted(name), trace_.rank, stream, first,
        event_microseconds(end) - first, stream, launched_in + 1, fields);
  }

  void gpu_tracks() {
    std::set<int> streams;
    for (const auto& event : trace_.gpu_events) {
      if (event.kind != GpuEventKind::call) streams.insert(event.stream);
    }
    track(call_track, "calls of CUDA");
    for (const int stream : streams) {
      track(first_gpu_track + stream, format("GPU, stream {}", stream));
    }
  }

  /// Calls have a track of their own: their clock is another one, and events of a track must nest.
  void gpu_event(const GpuEvent& event) {
    const bool is_call = event.kind == GpuEventKind::call;
    const auto track = is_call ? call_track : first_gpu_track + event.stream;
    std::string fields = format("\"correlation\":{}", first_gpu_correlation + event.correlation);
    if (!is_call) fields += format(",\"device\":{},\"stream\":{}", event.device, event.stream);
    if (event.bytes > 0) fields += format(",\"bytes\":{}", event.bytes);
    if (event.span != 0) fields += format(",\"External id\":{}", event.span);
    text_ += format(
        "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{{}}}}},\n",
        category(event.kind), quoted(event.name), trace_.rank, track, microseconds(event.begin),
        microseconds(event.end - event.begin), fields);
  }

  void compute(const Segment& segment) {
    if (segment.use != TimeUse::compute ||
        event_microseconds(segment.begin) == event_microseconds(segment.end))
      return;
    kernel(std::string(name(trace_.spans[segment.span].kind)), compute_stream, segment.begin,
           segment.end, segment.span, "");
  }

  void operations() {
    const auto tracks = operation_tracks(trace_);
    int named = first_operation_track;
    std::size_t launched_in = 0;
    for (std::size_t index = 0; index < trace_.spans.size(); ++index) {
      if (tracks[index] == 0) {
        launched_in = index;
        continue;
      }
      if (tracks[index] == named) {
        const auto number = ++named - first_operation_track;
        track(tracks[index], number == 1 ? "communication" : format("communication {}", number));
      }
      operation(trace_.spans[index], tracks[index], launched_in);
    }
  }

  void operation(const TraceSpan& span, int stream, std::size_t launched_in) {
    const auto group = trace_.groups.find(span.group);
    const auto size = group == trace_.groups.end() ? 0 : group->second.size();
    const auto fields = format(
        ",{},\"begin_ns\":{},\"end_ns\":{},\"Collective name\":{},\"In msg nelems\":{},"
        "\"Out msg nelems\":{},\"Group size\":{},\"dtype\":\"Byte\",\"Process Group "
        "Name\":{},\"Seq\":{}",
        own_fields(span), span.begin, span.end, quoted(span.operation), span.bytes, span.bytes,
        size, quoted(span.group), span.number);
    // Tools know communication by this name; on a GPU they see the library's own kernels.
    const auto name = has_gpu() ? event_name(span) : "ncclKernel " + span.operation;
    kernel(name, stream, span.begin, span.end, launched_in, fields);
  }

  const RankTrace& trace_;
  std::string text_;
};

}  // namespace

std::vector<int> operation_tracks(const RankTrace& trace) {
  std::vector<int> tracks(trace.spans.size(), 0);
  std::vector<std::int64_t> ends;
  for (std::size_t index = 0; index < trace.spans.size(); ++index) {
    const auto& span = trace.spans[index];
    if (span.kind != SpanKind::operation) continue;
    const auto free = std::find_if(ends.begin(), ends.end(), [&](std::int64_t end) {
      return end <= event_microseconds(span.begin);
    });
    const auto lane = static_cast<std::size_t>(free - ends.begin());
    if (free == ends.end()) ends.push_back(0);
    ends[lane] = event_microseconds(span.end);
    tracks[index] = first_operation_track + static_cast<int>(lane);
  }
  return tracks;
}

std::string kineto_events(const RankTrace& trace) {
  return Writer(trace).events();
}

std::string kineto_text(const RankTrace& trace) {
  Writer writer(trace);
  auto events = writer.events();
  // Without the last comma.
  events.resize(events.size() - 2);
  return writer.header() + events + "\n]}\n";
}

}  // namespace trireme::telemetry
