// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include "trireme/base/format.hpp"
#include "trireme/telemetry/step_fields.hpp"

#include "sink.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace trireme::track {
namespace {

using telemetry::RunRecord;
using telemetry::StepLine;

struct ActivityName {
  ActivityKind kind;
  const char* name;
};
constexpr std::array<ActivityName, 6> activity_names{{{ActivityKind::step, "step"},
                                                      {ActivityKind::data, "data"},
                                                      {ActivityKind::update, "update"},
                                                      {ActivityKind::evaluation, "evaluation"},
                                                      {ActivityKind::save, "save"},
                                                      {ActivityKind::load, "load"}}};
const char* activity_name(ActivityKind kind) {
  return activity_names[static_cast<std::size_t>(kind)].name;
}

/// The later of two saves of a step counts, be it on the nodes or in the run directory.
void add(Row& row, const Metric& metric, double value) {
  if (!std::isfinite(value)) return;
  const auto index = static_cast<std::size_t>(&metric - metrics().data());
  std::erase_if(row.points, [index](const Point& point) { return point.metric == index; });
  row.points.push_back({index, value});
}

const Metric* find_metric(std::string_view name) {
  const auto all = metrics();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const Metric& metric) { return metric.name == name; });
  return found == all.end() ? nullptr : &*found;
}
void add(Row& row, const char* name, double value) {
  add(row, *find_metric(name), value);
}

/// The largest step of these lines that is not beyond the row's.
template <typename Lines>
std::int64_t last_step(const Lines& lines, std::int64_t most) {
  std::int64_t last = 0;
  for (const auto& line : lines) {
    if constexpr (requires { line.is_left; }) {
      if (line.is_left) continue;
    }
    if (line.step <= most) last = std::max(last, line.step);
  }
  return last;
}

/// An activity that has ended at the time of its line, after so many milliseconds. Lines without a
/// time or a duration have no activity.
template <typename Line>
void add_activity(Row& row, ActivityKind kind, const Line& line, double duration_ms) {
  constexpr double most_ms = 1e11;
  constexpr std::int64_t nanoseconds = 1'000'000;
  if (line.time_ms <= 0 || !(duration_ms >= 0) || duration_ms > most_ms) return;
  const auto end = line.time_ms * nanoseconds;
  row.activities.push_back(
      {kind, line.step, line.restart, end - std::llround(duration_ms * 1e6), end});
}

/// The step, and those of its parts whose places in it are known: samples are read first, the
/// update comes last.
void add_step_activities(Row& row, const StepLine& step) {
  add_activity(row, ActivityKind::step, step, step.step_ms);
  if (row.activities.empty()) return;
  const auto whole = row.activities.back();
  add_activity(row, ActivityKind::update, step, std::min(step.optimizer_ms, step.step_ms));
  if (!(step.data_ms >= 0)) return;
  auto data = whole;
  data.kind = ActivityKind::data;
  data.end_ns = whole.begin_ns + std::llround(std::min(step.data_ms, step.step_ms) * 1e6);
  row.activities.push_back(data);
}

void add_step(Row& row, const StepLine& step) {
  row.time_ms = step.time_ms;
  add_step_activities(row, step);
  add(row, "train/step", static_cast<double>(step.step));
  for (const auto& metric : metrics()) {
    if (metric.number != nullptr) add(row, metric, step.*metric.number);
  }
}

/// The first step of the record from this one on.
auto find_step(const RunRecord& record, std::int64_t step) {
  return std::lower_bound(
      record.steps.begin(), record.steps.end(), step,
      [](const StepLine& line, std::int64_t wanted) { return line.step < wanted; });
}

/// The time of a row that has no line of a step: that of the step.
std::int64_t time_of(const RunRecord& record, std::int64_t step) {
  const auto found = find_step(record, step);
  return found != record.steps.end() && found->step == step ? found->time_ms : record.last_time_ms;
}

}  // namespace

std::span<const Metric> metrics() {
  static const auto all = [] {
    constexpr double ms = 1e-3;
    std::vector<Metric> list;
    for (const auto& each : telemetry::step_fields()) {
      if (*each.group == '\0') continue;
      const auto name = base::format("{}/{}", each.group, each.name);
      const bool is_time = name.ends_with("_ms");
      list.push_back({name, each.exposition, is_time ? ms : 1, is_time ? "s" : "1", each.help,
                      each.is_counter, each.number});
    }
    // The order of StepLine's members is that of all files that trackers have.
    std::sort(list.begin(), list.end(), [](const Metric& one, const Metric& other) {
      static const StepLine line;
      return &(line.*one.number) < &(line.*other.number);
    });
    list.insert(
        list.end(),
        {{"train/step", "trireme_step", 1, "1", "Steps that are done"},
         {"eval/loss", "trireme_held_out_loss", 1, "1", "Mean held-out loss in nats per token"},
         {"eval/perplexity", "trireme_held_out_perplexity", 1, "1", "exp of the held-out loss"},
         {"save/bytes", "trireme_checkpoint_bytes", 1, "By", "Bytes of the last checkpoint"},
         {"save/stall_ms", "trireme_checkpoint_stall_seconds", ms, "s",
          "How long training stood still for the last checkpoint"},
         {"save/write_ms", "trireme_checkpoint_write_seconds", ms, "s",
          "From the begin of the last checkpoint to its commit"}});
    return list;
  }();
  return all;
}

std::vector<Row> rows_behind(const RunRecord& record, const Cursor& cursor, bool last_too) {
  std::map<std::int64_t, Row> rows;  // by step
  const auto last = record.steps.empty() ? 0 : record.steps.back().step;
  const auto is_settled = [&](std::int64_t step) { return last_too || step < last; };
  for (auto step = find_step(record, cursor.step + 1); step != record.steps.end(); ++step) {
    if (is_settled(step->step)) add_step(rows[step->step], *step);
  }
  for (const auto& each : record.evaluations) {
    if (each.step <= cursor.evaluation_step || !is_settled(each.step)) continue;
    auto& row = rows[each.step];
    add(row, "eval/loss", each.loss);
    add(row, "eval/perplexity", std::exp(each.loss));
    add_activity(row, ActivityKind::evaluation, each, each.seconds * 1e3);
  }
  for (const auto& save : record.saves) {
    // One that the run has left would be a row beyond its newest step.
    if (save.is_left || save.step <= cursor.save_step || !is_settled(save.step)) continue;
    auto& row = rows[save.step];
    if (row.time_ms == 0) row.time_ms = save.time_ms;
    add(row, "save/bytes", save.bytes);
    add(row, "save/stall_ms", save.stall_ms);
    add(row, "save/write_ms", save.write_ms);
    add_activity(row, ActivityKind::save, save, save.write_ms);
  }
  std::vector<Row> all;
  for (auto& [step, row] : rows) {
    row.step = step;
    if (row.time_ms == 0) row.time_ms = time_of(record, step);
    all.push_back(std::move(row));
  }
  for (auto at = static_cast<std::size_t>(cursor.load_count);
       !all.empty() && at < record.loads.size(); ++at) {
    add_activity(all.front(), ActivityKind::load, record.loads[at], record.loads[at].seconds * 1e3);
  }
  return all;
}

// Points keep their order: files of trackers are written again byte for byte.
base::Json to_json(std::span<const Row> rows) {
  auto json = base::Json::array();
  for (const auto& row : rows) {
    auto points = base::Json::array();
    for (const auto& point : row.points) {
      points.push_back({metrics()[point.metric].name, point.value});
    }
    base::Json line{{"step", row.step}, {"time_ms", row.time_ms}, {"points", std::move(points)}};
    for (const auto& each : row.activities) {
      line["activities"].push_back(
          {activity_name(each.kind), each.step, each.restart, each.begin_ns, each.end_ns});
    }
    json.push_back(std::move(line));
  }
  return json;
}

namespace {

std::optional<Activity> activity_from(const base::Json& json) {
  if (!json.is_array() || json.size() != 5) return std::nullopt;
  const auto* const named = std::find_if(activity_names.begin(), activity_names.end(),
                                         [&](const auto& each) { return json[0] == each.name; });
  const bool has_numbers = std::all_of(json.begin() + 1, json.end(), [](const base::Json& number) {
    return number.is_number_integer();
  });
  if (named == activity_names.end() || !has_numbers) return std::nullopt;
  return Activity{named->kind, json[1], json[2], json[3], json[4]};
}

}  // namespace

std::vector<Row> rows_from(const base::Json& json) {
  std::vector<Row> rows;
  for (const auto& each : json) {
    if (!each.is_object()) continue;
    Row row{static_cast<std::int64_t>(noted(each, "step")),
            static_cast<std::int64_t>(noted(each, "time_ms")),
            {}};
    for (const auto& point : each.value("points", base::Json::array())) {
      if (!point.is_array() || point.size() != 2 || !point[1].is_number()) continue;
      if (!point[0].is_string()) continue;
      const auto* const metric = find_metric(point[0].get_ref<const std::string&>());
      if (metric != nullptr) add(row, *metric, point[1].get<double>());
    }
    for (const auto& activity : each.value("activities", base::Json::array())) {
      if (const auto known = activity_from(activity)) row.activities.push_back(*known);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Cursor behind(Cursor cursor, const RunRecord& record, const Row& row) {
  cursor.step = std::max(cursor.step, row.step);
  cursor.evaluation_step =
      std::max(cursor.evaluation_step, last_step(record.evaluations, row.step));
  cursor.save_step = std::max(cursor.save_step, last_step(record.saves, row.step));
  cursor.load_count = std::max(cursor.load_count, static_cast<std::int64_t>(record.loads.size()));
  return cursor;
}

}  // namespace trireme::track
