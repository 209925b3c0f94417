// SPDX-License-Identifier: Apache-2.0
// Starts, failures and other events of runs, and why failed ones failed.
#include "report/figure_texts.hpp"
#include "sections.hpp"

#include <algorithm>

namespace trireme::report {
namespace {

using telemetry::EventLine;

/// Rows of a run's history; of more the first and the last ones.
constexpr std::size_t most_rows = 200;

std::string member_text(const base::Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->dump(-1, ' ', false, base::Json::error_handler_t::replace);
}

/// What an event says beyond its name; empty for those that other sections show.
std::string details_of(const EventLine& event) {
  if (event.name == "start") return base::format("begins with step {}", event.step);
  if (event.name == "peak") {
    const auto flops = event.line.find("peak_flops");
    const bool is_known = flops != event.line.end() && flops->is_number();
    return base::format("MFU divides by {} from here on",
                        is_known ? peak_text(flops->get<double>()) : "another peak");
  }
  if (event.name == "not saved") return member_text(event.line, "why");
  if (event.name == "went back") {
    return base::format("to step {}: {}", member_text(event.line, "to"),
                        member_text(event.line, "why"));
  }
  if (event.name == "skipped") {
    return base::format("loss {}, gradient norm {}", member_text(event.line, "loss"),
                        member_text(event.line, "grad_norm"));
  }
  if (event.name == "lines lost") return member_text(event.line, "lines") + " lines";
  return {};
}

std::string time_text(std::int64_t time_ms) {
  return time_ms == 0 ? std::string("–") : postmortem::utc_text(time_ms).substr(0, 19);
}

struct Row {
  std::int64_t time_ms;
  std::string step;
  std::string what;
  std::string details;
};

std::vector<Row> rows_of(const RunView& run) {
  std::vector<Row> rows;
  for (const auto& event : run.record.events) {
    // Their numbers stand elsewhere.
    if (event.is_measurement()) continue;
    rows.push_back({event.time_ms, std::to_string(event.step), event.name, details_of(event)});
  }
  const auto add_failure = [&rows](const postmortem::FirstCause& cause, std::optional<int> code) {
    rows.push_back({cause.time_ms, "",
                    code ? base::format("failed, exit code {}", *code) : std::string("failed"),
                    cause.text + (cause.host.empty() ? "" : base::format(" (on {})", cause.host))});
  };
  for (const auto& failure : run.earlier_failures) add_failure(failure.cause, failure.exit_code);
  if (run.postmortem.cause) add_failure(*run.postmortem.cause, run.postmortem.exit_code);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& one, const Row& other) { return one.time_ms < other.time_ms; });
  return rows;
}

Html history_of(const RunView& run) {
  auto rows = rows_of(run);
  Html note;
  if (rows.size() > most_rows) {
    note = markup("<p class=\"note\">{} rows in the middle are left out.</p>\n",
                  rows.size() - most_rows);
    rows.erase(rows.begin() + most_rows / 2, rows.end() - most_rows / 2);
  }
  std::vector<std::vector<Html>> cells;
  for (const auto& row : rows) {
    cells.push_back(
        {text(time_text(row.time_ms)), text(row.step), text(row.what), text(row.details)});
  }
  auto content = markup(
      "{}{}", cells.empty() ? Html{} : table({"time, UTC", "step", "event", "what"}, cells), note);
  // The page of a failed run begins with it.
  if (run.state != State::failed) {
    content += markup("<details><summary>What trireme why says</summary>{}</details>\n",
                      told(postmortem::text_of(run.postmortem)));
  }
  return content;
}

}  // namespace

Html cause_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    if (run.state != State::failed) continue;
    content += part_of_run(runs, run, markup("{}\n", told(postmortem::text_of(run.postmortem))));
  }
  return section("cause", "Why it failed", content);
}

Html history_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) content += part_of_run(runs, run, history_of(run));
  return section("history", "Starts and failures", content);
}

}  // namespace trireme::report
