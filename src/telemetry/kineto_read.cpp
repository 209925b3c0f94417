// SPDX-License-Identifier: Apache-2.0
// Reads the trace of a rank from Kineto's JSON.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include "telemetry/kineto_layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace trireme::telemetry {
namespace {

using base::format;
using base::Json;

std::optional<std::int64_t> whole(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

int small(const Json& object, const char* key, int otherwise) {
  return static_cast<int>(
      std::clamp<std::int64_t>(whole(object, key).value_or(otherwise), -1, 1 << 30));
}

std::uint64_t count(const Json& object, const char* key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(object, key).value_or(0)));
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

const Json& object_at(const Json& object, const char* key) {
  static const Json none = Json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : none;
}

/// The event's span; nothing of events that follow from others, or that are none of ours.
std::optional<TraceSpan> span_of(const Json& event) {
  if (!event.is_object()) return std::nullopt;
  const auto& fields = object_at(event, "args");
  const auto kind = span_kind(text_at(fields, "kind"));
  if (!kind) return std::nullopt;
  TraceSpan span;
  span.kind = *kind;
  if (*kind == SpanKind::operation) {
    span.begin = whole(fields, "begin_ns").value_or(0);
    span.end = whole(fields, "end_ns").value_or(0);
  } else {
    const double begin = event.value("ts", 0.0);
    span.begin = std::llround(begin * 1e3);
    span.end = span.begin + std::llround(event.value("dur", 0.0) * 1e3);
  }
  span.place = {small(fields, "micro_batch", -1), small(fields, "chunk", -1),
                whole(fields, "number").value_or(-1)};
  span.operation = text_at(fields, "operation");
  span.group = text_at(fields, "group");
  span.bytes = count(fields, "bytes");
  span.number = count(fields, "seq");
  span.peer = small(fields, "peer", -1);
  span.tag = small(fields, "tag", -1);
  return span;
}

void read_header(const Json& file, RankTrace& trace) {
  const auto& distributed = object_at(file, "distributedInfo");
  trace.rank = small(distributed, "rank", 0);
  trace.world_size = small(distributed, "world_size", 1);
  const auto& own = object_at(file, "trireme");
  trace.host = text_at(own, "host");
  trace.job = text_at(own, "job");
  trace.origin_unix_ns = std::max<std::int64_t>(0, whole(own, "origin_unix_ns").value_or(0));
  trace.first_step = whole(own, "first_step").value_or(0);
  trace.last_step = whole(own, "last_step").value_or(0);
  trace.clock_error_ns = whole(own, "clock_error_ns").value_or(0);
  trace.left_out = count(own, "left_out");
  for (const auto& [axis, place] : object_at(own, "coordinates").items()) {
    if (place.is_number_integer()) trace.coordinates[axis] = place.get<int>();
  }
  const auto groups = distributed.find("pg_config");
  if (groups == distributed.end() || !groups->is_array()) return;
  for (const auto& group : *groups) {
    if (!group.is_object() || !group.contains("ranks")) continue;
    auto& ranks = trace.groups[text_at(group, "pg_name")];
    for (const auto& rank : group["ranks"]) {
      if (rank.is_number_integer()) ranks.push_back(rank.get<int>());
    }
  }
}

base::Failure no_trace(const std::filesystem::path& file) {
  return base::usage_failure(format(
      "'{}' is no trace of a rank (train.profile and trireme profile write them)", file.string()));
}

/// The file's text before its events; empty if it has no such begin.
std::string text_before_events(const std::filesystem::path& file) {
  // Groups name their ranks there.
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const auto opened = base::value_or_throw(base::open_file(file, O_RDONLY | O_NONBLOCK));
  struct stat facts {};
  if (::fstat(opened.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const auto size = std::min(most_bytes, static_cast<std::size_t>(facts.st_size));
  std::string text;
  for (std::size_t wanted = 4096; text.size() < size; wanted *= 4) {
    const auto known = text.size();
    text.resize(std::min(wanted, size));
    base::read_at(opened, std::as_writable_bytes(std::span(text).subspan(known)), known, file);
    const auto from = known - std::min(known, kineto_events_key.size());
    const auto end = text.find(kineto_events_key, from);
    if (end != std::string::npos) return text.substr(0, end);
  }
  return {};
}

}  // namespace

base::Result<RankTrace> read_rank_trace_header(const std::filesystem::path& file) {
  try {
    const auto text = text_before_events(file);
    const auto read = base::parse_json(text + "\"traceEvents\": []}", file.string());
    if (!read || !read->is_object() || object_at(*read, "trireme").empty()) return no_trace(file);
    RankTrace trace;
    read_header(*read, trace);
    return trace;
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  } catch (const Json::exception&) {
    return no_trace(file);
  }
}

base::Result<RankTrace> read_rank_trace(const std::filesystem::path& file) {
  // A million spans, the most that a rank records.
  constexpr std::size_t largest_file = std::size_t{1} << 30;
  auto read = base::read_json_file(file, base::ExitCode::usage, largest_file);
  if (!read) return read.failure();
  if (!read->is_object() || object_at(*read, "trireme").empty()) return no_trace(file);
  RankTrace trace;
  try {
    read_header(*read, trace);
    const auto events = read->find("traceEvents");
    if (events == read->end() || !events->is_array()) return no_trace(file);
    for (const auto& event : *events) {
      if (auto span = span_of(event)) trace.spans.push_back(std::move(*span));
    }
  } catch (const Json::exception&) {
    // A number where a text should be, or the reverse.
    return no_trace(file);
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const auto& one, const auto& other) {
    return one.begin != other.begin ? one.begin < other.begin : one.end > other.end;
  });
  return trace;
}

}  // namespace trireme::telemetry
