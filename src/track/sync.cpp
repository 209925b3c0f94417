// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/sync.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"
#include "trireme/report/run_view.hpp"

#include "sink.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;
using base::Json;

std::string short_hash(std::string_view text, std::size_t letters) {
  return base::hexadecimal(base::sha256(text)).substr(0, letters);
}

/// RUN/track/mlflow-1a2b3c4d.json.
fs::path state_path(const fs::path& run, const Target& target) {
  return run / "track" / base::format("{}-{}.json", name(target.kind), short_hash(target.place, 8));
}

std::int64_t step_of(const Json& state, const char* key) {
  const auto found = state.find(key);
  return found != state.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::int64_t first_time_ms(const telemetry::RunRecord& record) {
  for (const auto& event : record.events) {
    if (event.time_ms > 0) return event.time_ms;
  }
  return record.steps.empty() ? record.last_time_ms : record.steps.front().time_ms;
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

}  // namespace

struct Sync::Parts {
  fs::path run;
  Target target;
  Options options;
  fs::path state_file;
  base::File lock;
  telemetry::RecordReader reader;
  std::unique_ptr<Sink> sink;
  Cursor cursor = {};
  Json sink_state = nullptr;
  RunFacts facts = {};

  base::Status load();
  void store() const;
  void read_on();
};

base::Status Sync::Parts::load() {
  std::error_code error;
  if (!fs::exists(state_file, error)) return {};
  const auto state = base::read_json_file(state_file, base::ExitCode::checkpoint, 1U << 20);
  if (!state.ok()) return state.failure();
  if (!state->is_object() || state->value("target", Json()) != target.text()) {
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("'{}' is no note of what was sent to {}; remove it to send "
                                      "all of the run again",
                                      state_file.string(), target.text())};
  }
  cursor = {step_of(*state, "step"), step_of(*state, "evaluation_step"),
            step_of(*state, "save_step")};
  sink_state = state->value("sink", Json(nullptr));
  return {};
}

void Sync::Parts::store() const {
  const Json state{{"target", target.text()},
                   {"step", cursor.step},
                   {"evaluation_step", cursor.evaluation_step},
                   {"save_step", cursor.save_step},
                   {"sink", sink_state}};
  base::write_file_durably(state_file, state.dump() + "\n");
}

void Sync::Parts::read_on() {
  // Order: the state first. Of a run that has ended by then, all lines are there.
  const auto state = report::state_of(run, reader.record());
  base::success_or_throw(reader.advance());
  const auto& record = reader.record();
  facts.state = state == report::State::running ? state : report::state_of(run, record);
  facts.end_ms = record.last_time_ms;
  if (!facts.id.empty() || (record.events.empty() && record.steps.empty())) return;
  facts.path = run;
  facts.values = report::values_of(run);
  facts.name = record.run.empty() ? report::folder_name(run) : record.run;
  facts.start_ms = first_time_ms(record);
  std::error_code error;
  const auto where = fs::weakly_canonical(run, error).string();
  facts.id = short_hash(base::format("{} {}", where, facts.start_ms), 8);
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
  auto parts = std::make_unique<Parts>(
      Parts{run, target, std::move(options), state_file, std::move(lock).value(),
            telemetry::RecordReader(telemetry::record_of_run(run)), std::move(sink)});
  if (auto loaded = parts->load(); !loaded.ok()) return loaded.failure();
  return Sync(std::move(parts));
}

Sync::Counts Sync::send(Send what) {
  auto& parts = *parts_;
  parts.read_on();
  const auto& record = parts.reader.record();
  if (parts.facts.id.empty()) return {};
  const auto rows = rows_behind(record, parts.cursor, what == Send::all);
  Counts counts;
  for (std::size_t begin = 0; begin < rows.size(); begin += parts.options.batch_rows) {
    const auto count = std::min(parts.options.batch_rows, rows.size() - begin);
    const auto batch = std::span(rows).subspan(begin, count);
    parts.sink->send(parts.facts, batch, parts.sink_state);
    for (const auto& row : batch) counts.points += static_cast<std::int64_t>(row.points.size());
    // Rows ascend by step: the last one has the batch's furthest.
    parts.cursor = behind(parts.cursor, record, batch.back());
    counts.rows += static_cast<std::int64_t>(count);
    parts.store();
  }
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
