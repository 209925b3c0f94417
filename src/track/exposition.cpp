// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/exposition.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/utf8.hpp"

#include "facts.hpp"
#include "newest.hpp"

#include <cmath>

namespace trireme::track {
namespace {

/// Value of a label: UTF-8, with backslash, quote and line break escaped.
std::string escaped(const std::string& text) {
  std::string value;
  for (const char letter : base::repaired_utf8(text)) {
    if (letter == '\\' || letter == '"') value += '\\';
    value += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return value;
}

}  // namespace

void Exposition::metric(std::string_view name, std::string_view help, Type type) {
  name_ = name;
  text_ += base::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                        type == Type::counter ? "counter" : "gauge");
}

void Exposition::sample(const Labels& labels, double value) {
  if (!std::isfinite(value)) return;
  text_ += name_;
  char before = '{';
  for (const auto& [label, content] : labels) {
    text_ += base::format("{}{}=\"{}\"", before, label, escaped(content));
    before = ',';
  }
  text_ += base::format("{} {}\n", labels.empty() ? "" : "}", base::number_text(value));
}

void note_newest(std::span<const Row> rows, base::Json& newest) {
  if (!newest.is_object()) newest = base::Json::object();
  for (const auto& row : rows) {
    for (const auto& point : row.points) {
      const auto& metric = metrics()[point.metric];
      newest[metric.exposition] = point.value * metric.to_base_unit;
    }
  }
}

void add_newest(const RunFacts& run, const base::Json& newest, Exposition& exposition) {
  const Exposition::Labels labels{{"run", run.name}};
  exposition.metric("trireme_up", "Whether a process holds the run");
  exposition.sample(labels, run.state == report::State::running ? 1 : 0);
  for (const auto& metric : metrics()) {
    const auto found = newest.find(metric.exposition);
    if (found == newest.end() || !found->is_number()) continue;
    exposition.metric(metric.exposition, metric.help,
                      metric.is_counter ? Exposition::Type::counter : Exposition::Type::gauge);
    exposition.sample(labels, found->get<double>());
  }
}

struct RunExposition::Parts {
  std::filesystem::path run;
  telemetry::RecordReader reader;
  RunFacts facts = {};
  Cursor cursor = {};
  base::Json newest = base::Json::object();
};

RunExposition::RunExposition(std::filesystem::path run)
    : parts_(new Parts{run, telemetry::RecordReader(telemetry::record_of_run(run))}) {}

RunExposition::~RunExposition() = default;

void RunExposition::add_to(Exposition& exposition) {
  auto& [run, reader, facts, cursor, newest] = *parts_;
  read_on(run, reader, facts);
  if (facts.id.empty()) return;
  // Steps that the run makes again count, too: a scrape shows what is, and keeps nothing.
  const auto& record = reader.record();
  if (record.step < cursor.step) {
    cursor = {};
    newest = base::Json::object();
  }
  const auto rows = rows_behind(record, cursor, true);
  note_newest(rows, newest);
  if (!rows.empty()) cursor = behind(cursor, record, rows.back());
  reader.forget_steps(cursor.step);
  add_newest(facts, newest, exposition);
}

}  // namespace trireme::track
