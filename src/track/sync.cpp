// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/sync.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"
#include "trireme/postmortem/postmortem.hpp"
#include "trireme/report/run_view.hpp"
#include "trireme/schema/quoted.hpp"

#include "facts.hpp"
#include "recordings.hpp"
#include "sink.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;
using base::Json;

/// A batch of rows has some 400 bytes a row.
constexpr std::size_t max_note_bytes = std::size_t{4} << 20;

/// RUN/track/mlflow-1a2b3c4d.json.
fs::path state_path(const fs::path& run, const Target& target) {
  return run / "track" / base::format("{}-{}.json", name(target.kind), short_hash(target.place, 8));
}

/// One process at a time sends a run to a place.
base::Result<base::File> take_lock(const fs::path& state) {
  auto file =
      base::open_file(state.string() + ".lock", O_RDWR | O_CREAT, 0644, base::ExitCode::checkpoint);
  if (!file.ok()) return file.failure();
  if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return base::Failure{
        base::ExitCode::launch,
        base::format("another process sends the run there at the moment ('{}.lock' "
                     "is held); let it do so, or end it",
                     state.string())};
  }
  return file;
}

/// Rows on their way to the tracker, and the cursor behind them. They are noted before they are
/// sent: a run that is killed meanwhile and makes those steps again, with other times, sends the
/// first ones again, which the tracker knows.
struct Batch {
  std::vector<Row> rows;
  Cursor behind;
};

Cursor cursor_in(const Json& state) {
  const auto step = [&](const char* key) { return static_cast<std::int64_t>(noted(state, key)); };
  return {step("step"), step("evaluation_step"), step("save_step"), step("load_count")};
}
Json json_of(const Cursor& cursor) {
  return {{"step", cursor.step},
          {"evaluation_step", cursor.evaluation_step},
          {"save_step", cursor.save_step},
          {"load_count", cursor.load_count}};
}

/// Run that a note is about: its id, and where it was at the last sending.
struct NotedRun {
  std::string id;
  std::string path;
  std::int64_t start_ms = 0;
};

NotedRun run_in(const Json& state) {
  const auto run = state.value("run", Json(nullptr));
  if (!run.is_object()) return {};
  const auto text = [&run](const char* key) {
    const auto found = run.find(key);
    return found != run.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return {text("id"), schema::from_recorded(text("path")),
          static_cast<std::int64_t>(noted(run, "start_ms"))};
}

std::string place_of(const fs::path& run) {
  std::error_code error;
  return fs::weakly_canonical(run, error).string();
}

/// True if a note is not about the run in whose folder it is: the folder was copied, or the run
/// begun anew. A run that was moved keeps what it is to trackers.
bool is_of_another(const NotedRun& noted, const RunFacts& run) {
  if (noted.id.empty() || noted.id == run.id) return false;
  std::error_code error;
  const bool is_copy = noted.path != place_of(run.path) && postmortem::is_run(noted.path) &&
                       !fs::equivalent(noted.path, run.path, error);
  return is_copy || noted.start_ms != run.start_ms;
}

struct RanksName {
  TraceRanks ranks;
  const char* name;
};
constexpr std::array<RanksName, 4> ranks_names{{{TraceRanks::sampled, "sampled"},
                                                {TraceRanks::single, "single"},
                                                {TraceRanks::first_of_node, "first-of-node"},
                                                {TraceRanks::all, "all"}}};

}  // namespace

const char* name(TraceRanks ranks) {
  return ranks_names[static_cast<std::size_t>(ranks)].name;
}

std::optional<TraceRanks> trace_ranks(std::string_view name) {
  for (const auto& each : ranks_names) {
    if (each.name == name) return each.ranks;
  }
  return std::nullopt;
}

struct Sync::Parts {
  fs::path run;
  Target target;
  Options options;
  fs::path state_file;
  base::File lock;
  telemetry::RecordReader reader;
  std::unique_ptr<Sink> sink;
  Recordings recordings;
  Cursor cursor = {};
  Batch under_way = {};
  Json sink_state = nullptr;
  RunFacts facts = {};
  NotedRun noted_run = {};

  base::Status load();
  /// Forgets a note that came with a copy: both would write on in one place.
  void settle_run();
  void store() const;
  /// Sends what is under way.
  void deliver();
};

base::Status Sync::Parts::load() {
  std::error_code error;
  if (!fs::exists(state_file, error)) return {};
  const auto state = base::read_json_file(state_file, base::ExitCode::checkpoint, max_note_bytes);
  if (!state.ok()) return state.failure();
  if (!state->is_object() || state->value("target", Json()) != schema::recorded(target.text())) {
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("'{}' is no note of what was sent to {}; remove it to send "
                                      "all of the run again",
                                      state_file.string(), target.text())};
  }
  cursor = cursor_in(*state);
  if (const auto sent = state->find("under_way"); sent != state->end() && sent->is_object()) {
    under_way = {rows_from(sent->value("rows", Json::array())), cursor_in(*sent)};
  }
  sink_state = state->value("sink", Json(nullptr));
  recordings.take_notes(state->value("traces", Json(nullptr)));
  noted_run = run_in(*state);
  return {};
}

void Sync::Parts::settle_run() {
  if (is_of_another(noted_run, facts)) {
    base::log::local::info("track",
                           "'{}' is a copy of '{}', or was begun anew: {} gets it as a run of its "
                           "own, from its first step on",
                           run.string(), base::printable(noted_run.path), target.text());
    cursor = {};
    under_way = {};
    sink_state = nullptr;
    recordings.take_notes(Json::object());
  } else if (!noted_run.id.empty()) {
    facts.id = noted_run.id;
  }
  noted_run = {facts.id, place_of(run), facts.start_ms};
}

void Sync::Parts::store() const {
  auto state = json_of(cursor);
  state["run"] = {{"id", noted_run.id},
                  {"path", schema::recorded(noted_run.path)},
                  {"start_ms", noted_run.start_ms}};
  state["target"] = schema::recorded(target.text());
  state["sink"] = sink_state;
  if (!recordings.notes().empty()) state["traces"] = recordings.notes();
  if (!under_way.rows.empty()) {
    state["under_way"] = json_of(under_way.behind);
    state["under_way"]["rows"] = to_json(under_way.rows);
  }
  base::write_file_durably(state_file, base::json_text(state) + "\n");
}

void Sync::Parts::deliver() {
  if (under_way.rows.empty()) return;
  sink->send(facts, under_way.rows, sink_state);
  cursor = under_way.behind;
  under_way = {};
  store();
}

Sync::Sync(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Sync::Sync(Sync&&) noexcept = default;
Sync::~Sync() = default;

base::Result<Sync> Sync::open(const fs::path& run, const Target& target, Options options) {
  std::error_code error;
  if (!fs::is_directory(run, error) || !postmortem::is_run(run)) {
    const auto refused = postmortem::examine(run, {});
    if (!refused.ok()) return refused.failure();
  }
  const auto state_file = state_path(run, target);
  if (auto made = base::make_folders_durably(state_file.parent_path()); !made.ok()) {
    return made.failure();
  }
  auto lock = take_lock(state_file);
  if (!lock.ok()) return lock.failure();
  auto sink = make_sink(target, options);
  const auto ranks = options.trace_ranks;
  auto parts = std::make_unique<Parts>(Parts{run, target, std::move(options), state_file,
                                             std::move(lock).value(),
                                             telemetry::RecordReader(telemetry::record_of_run(run)),
                                             std::move(sink), Recordings(run, ranks)});
  if (auto loaded = parts->load(); !loaded.ok()) return loaded.failure();
  return Sync(std::move(parts));
}

Sync::Counts Sync::send(Send what) {
  auto& parts = *parts_;
  read_on(parts.run, parts.reader, parts.facts);
  const auto& record = parts.reader.record();
  if (parts.facts.id.empty()) return {};
  parts.settle_run();
  if (parts.facts.state == report::State::running &&
      parts.sink->resume(parts.facts, parts.sink_state)) {
    parts.store();
  }
  Counts counts;
  const auto deliver = [&] {
    counts.rows += static_cast<std::int64_t>(parts.under_way.rows.size());
    for (const auto& row : parts.under_way.rows) {
      counts.points += static_cast<std::int64_t>(row.points.size());
    }
    parts.deliver();
  };
  deliver();
  auto rows = rows_behind(record, parts.cursor, what == Send::all);
  if (!parts.sink->takes_traces()) {
    for (auto& row : rows) row.activities.clear();
  }
  for (std::size_t begin = 0; begin < rows.size(); begin += parts.options.batch_rows) {
    const auto batch =
        std::span(rows).subspan(begin, std::min(parts.options.batch_rows, rows.size() - begin));
    // Rows ascend by step: the last one has the batch's furthest.
    parts.under_way = {{batch.begin(), batch.end()}, behind(parts.cursor, record, batch.back())};
    parts.store();
    deliver();
  }
  parts.reader.forget_steps(parts.cursor.step);
  counts.spans = parts.recordings.send(*parts.sink, parts.facts, [&parts] { parts.store(); });
  if (what == Send::all) {
    parts.sink->end(parts.facts, parts.sink_state);
    parts.store();
  }
  return counts;
}

std::string Sync::place() const {
  return parts_->sink->place(parts_->facts);
}

}  // namespace trireme::track
