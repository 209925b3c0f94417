// SPDX-License-Identifier: Apache-2.0
#include "facts.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::track {
namespace {

std::int64_t first_time_ms(const telemetry::RunRecord& record) {
  for (const auto& event : record.events) {
    if (event.time_ms > 0) return event.time_ms;
  }
  return record.steps.empty() ? record.last_time_ms : record.steps.front().time_ms;
}

}  // namespace

std::string short_hash(std::string_view text, std::size_t letters) {
  return base::hexadecimal(base::sha256(text)).substr(0, letters);
}

void read_on(const std::filesystem::path& run, telemetry::RecordReader& reader, RunFacts& facts) {
  // Order: the state first. Of a run that has ended by then, all lines are there.
  const auto state = report::state_of(run, reader.record());
  base::success_or_throw(reader.advance());
  const auto& record = reader.record();
  facts.state = state == report::State::running ? state : report::state_of(run, record);
  for (const auto& event : record.events) {
    const auto job = event.line.find("job");
    if (job != event.line.end() && job->is_string()) facts.jobs[event.restart] = *job;
  }
  const auto end_now = [&facts, &record] {
    // Servers take no run that ends before it begins: the clock was set back.
    facts.end_ms = std::max(facts.start_ms, record.last_time_ms);
  };
  if (!facts.id.empty() || (record.events.empty() && record.steps.empty())) return end_now();
  facts.path = run;
  facts.values = report::values_of(run);
  facts.name = record.run.empty() ? report::folder_name(run) : record.run;
  facts.start_ms = first_time_ms(record);
  end_now();
  std::error_code error;
  const auto where = std::filesystem::weakly_canonical(run, error).string();
  facts.id = short_hash(base::format("{} {}", where, facts.start_ms), 8);
}

}  // namespace trireme::track
