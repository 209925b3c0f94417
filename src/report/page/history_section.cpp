// SPDX-License-Identifier: Apache-2.0
// Starts, failures and other events of runs, and why failed ones failed.
#include "report/figure_texts.hpp"
#include "sections.hpp"

#include <optional>

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

/// The details of an event beyond its name; empty for those that other sections show.
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
  bool begins_start = false;
};

/// Where a failure stands among the rows of a record: at the end of its start. The rows keep the
/// order of their lines, and times of two starts compare only where the clock was not set back.
std::size_t place_of(std::int64_t failed_ms, const std::vector<Row>& rows) {
  std::optional<std::int64_t> start_ms;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (!rows[at].begins_start) continue;
    const auto next_ms = rows[at].time_ms;
    const bool is_behind = start_ms && *start_ms <= failed_ms;
    if (is_behind && (next_ms >= failed_ms || next_ms < rows[at - 1].time_ms)) return at;
    start_ms = next_ms;
  }
  return start_ms && failed_ms < *start_ms && rows.front().time_ms > failed_ms ? 0 : rows.size();
}

std::vector<Row> rows_of(const RunView& run) {
  std::vector<Row> rows;
  for (const auto& event : run.record.events) {
    // Their numbers stand elsewhere.
    if (event.is_measurement()) continue;
    rows.push_back({event.time_ms, std::to_string(event.step), event.name, details_of(event),
                    event.name == "start"});
  }
  const auto row_of = [](const postmortem::FirstCause& cause, std::optional<int> code) {
    return Row{cause.time_ms, "",
               code ? base::format("failed, exit code {}", *code) : std::string("failed"),
               cause.text + (cause.host.empty() ? "" : base::format(" (on {})", cause.host))};
  };
  for (const auto& failure : run.earlier_failures) {
    const auto place = place_of(failure.cause.time_ms, rows);
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(place),
                row_of(failure.cause, failure.exit_code));
  }
  // Cause of the newest start's end.
  if (run.postmortem.cause) {
    rows.push_back(row_of(*run.postmortem.cause, run.postmortem.exit_code));
  }
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
