// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/report/trace.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace trireme::report {
namespace {

/// Group, sender, receiver, tag: messages of one key match in the order of their starts.
using MessageKey = std::tuple<std::string, int, int, int>;

/// An end of a message: where an arrow touches its event.
struct End {
  int rank = 0;
  int track = 0;
  std::int64_t microseconds = 0;
};

std::map<MessageKey, std::vector<End>> ends_of(const RunTrace& trace, std::string_view operation) {
  std::map<MessageKey, std::vector<End>> ends;
  const bool sends = operation == "send";
  for (const auto& rank : trace.ranks) {
    const auto tracks = telemetry::operation_tracks(rank);
    for (std::size_t index = 0; index < rank.spans.size(); ++index) {
      const auto& span = rank.spans[index];
      if (tracks[index] == 0 || span.operation != operation || span.peer < 0) continue;
      const int from = sends ? rank.rank : span.peer;
      const int to = sends ? span.peer : rank.rank;
      // An arrow begins where the send does and ends just inside of the receive's end.
      const auto begin = telemetry::event_microseconds(span.begin);
      const auto end = telemetry::event_microseconds(span.end);
      ends[{span.group, from, to, span.tag}].push_back(
          {rank.rank, tracks[index], sends ? begin : std::max(begin, end - 1)});
    }
  }
  return ends;
}

std::string arrow_end(const char* phase, std::size_t id, const End& end) {
  return base::format(
      "{{\"ph\":\"{}\",\"id\":{},\"cat\":\"message\",\"name\":\"message\",\"pid\":{},\"tid\":{},"
      "\"ts\":{}{}}},\n",
      phase, id, end.rank, end.track, end.microseconds,
      std::string_view(phase) == "f" ? ",\"bp\":\"e\"" : "");
}

std::string arrows(const RunTrace& trace) {
  const auto sends = ends_of(trace, "send");
  const auto receives = ends_of(trace, "receive");
  std::string text;
  std::size_t id = 0;
  for (const auto& [key, from] : sends) {
    const auto found = receives.find(key);
    if (found == receives.end()) continue;
    const auto& to = found->second;
    for (std::size_t at = 0; at < std::min(from.size(), to.size()); ++at) {
      ++id;
      text += arrow_end("s", id, from[at]) + arrow_end("f", id, to[at]);
    }
  }
  return text;
}

}  // namespace

std::string perfetto_text(const RunTrace& trace) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const auto& rank : trace.ranks) text += telemetry::kineto_events(rank);
  text += arrows(trace);
  text.resize(text.size() - 2);
  return text + "\n]}\n";
}

}  // namespace trireme::report
