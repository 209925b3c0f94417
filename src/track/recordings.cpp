// SPDX-License-Identifier: Apache-2.0
#include "recordings.hpp"

#include "trireme/base/log.hpp"
#include "trireme/report/trace.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include "sink.hpp"

#include <set>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

constexpr int most_sampled = 16;

fs::path file_of(const fs::path& folder, int rank) {
  return folder / telemetry::trace_file_name(rank);
}

}  // namespace

std::vector<int> ranks_to_send(const fs::path& recording, int world_size, TraceRanks ranks) {
  std::vector<int> all;
  std::set<std::string> hosts;
  const int count = ranks == TraceRanks::sampled ? std::min(most_sampled, world_size) : world_size;
  for (int at = 0; at < count; ++at) {
    const int rank = static_cast<int>(std::int64_t{at} * world_size / count);
    if (ranks == TraceRanks::single && rank > 0) break;
    if (ranks == TraceRanks::first_of_node) {
      const auto header = telemetry::read_rank_trace_header(file_of(recording, rank));
      if (!header || !hosts.insert(header->host).second) continue;
    }
    all.push_back(rank);
  }
  return all;
}

void Recordings::take_notes(const base::Json& notes) {
  if (notes.is_object()) notes_ = notes;
}

std::int64_t Recordings::send(Sink& sink, const RunFacts& facts,
                              const std::function<void()>& keep) {
  std::int64_t count = 0;
  for (const auto& folder : report::trace_folders(run_)) {
    if (!sink.takes_traces()) break;
    count += send_one(folder, sink, facts, keep);
  }
  return count;
}

std::int64_t Recordings::send_one(const fs::path& folder, Sink& sink, const RunFacts& facts,
                                  const std::function<void()>& keep) {
  const auto header = telemetry::read_rank_trace_header(file_of(folder, 0));
  // Older versions have not noted the time of day.
  if (!header || header->origin_unix_ns == 0) return 0;
  auto& note = notes_[folder.filename().string()];
  // Steps that a run has made again were recorded again: another recording.
  const base::Json wanted{{"origin", header->origin_unix_ns}, {"ranks", name(ranks_)}};
  if (!note.is_object() || note.value("origin", base::Json()) != wanted["origin"] ||
      note.value("ranks", base::Json()) != wanted["ranks"]) {
    note = wanted;
  }
  auto next = static_cast<int>(noted(note, "next"));
  if (next >= header->world_size) return 0;
  std::int64_t count = 0;
  for (const int rank : ranks_to_send(folder, header->world_size, ranks_)) {
    if (rank < next) continue;
    const auto trace = telemetry::read_rank_trace(file_of(folder, rank));
    if (trace) {
      count += sink.send_trace(facts, *trace);
      if (!sink.takes_traces()) return count;
    } else {
      base::log::local::warning("track", "{} (its spans are not sent)", trace.failure().text);
    }
    note["next"] = rank + 1;
    keep();
  }
  note["next"] = header->world_size;
  keep();
  return count;
}

}  // namespace trireme::track
