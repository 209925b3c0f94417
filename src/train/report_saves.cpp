// SPDX-License-Identifier: Apache-2.0
// The report's part that tells of saves.
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/train/report.hpp"

#include "train/lines/step_lines.hpp"

namespace trireme::train {

void Report::saved(const SaveRecord& record) {
  if (!settings_.speaks) return;
  const bool is_for_nodes = record.tier == SaveRecord::Tier::nodes;
  append({{"kind", "save"},
          {"step", record.step},
          {"bytes", record.bytes},
          {"stall_ms", record.stall_seconds * 1e3},
          {"write_ms", record.write_seconds * 1e3},
          {"asynchronous", record.asynchronous},
          {"tier", is_for_nodes ? "nodes" : "shared"},
          {"seconds", record.stall_seconds}});
  const auto waited = record.asynchronous ? base::format(", training waited {}",
                                                         base::duration_text(record.stall_seconds))
                                          : "";
  lines_->between(
      StepLines::Between::save, record.step,
      base::format(
          "saved {}{} in {}{}", base::bytes_text(record.bytes), is_for_nodes ? " on the nodes" : "",
          base::duration_text(record.asynchronous ? record.write_seconds : record.stall_seconds),
          waited));
}

void Report::not_saved(std::int64_t step, SaveRecord::Tier tier, const std::string& why) {
  if (!settings_.speaks) return;
  append({{"kind", "event"}, {"event", "not saved"}, {"step", step}, {"why", why}});
  base::log::warning("train", "step {} is not saved{}: {} (training goes on; {})", step,
                     tier == SaveRecord::Tier::nodes ? " on the nodes" : "", why,
                     tier == SaveRecord::Tier::nodes
                         ? "what is due in the run directory goes there at once"
                         : "it is tried again when the next save is due");
}

void Report::saves_every(std::int64_t step, const SaveInterval& interval) {
  if (!settings_.speaks) return;
  append({{"kind", "event"},
          {"event", "save interval"},
          {"step", step},
          {"minutes", interval.minutes},
          {"failure_hours", interval.failure_hours},
          {"stall_seconds", interval.save.stall},
          {"write_seconds", interval.save.write},
          {"measured", interval.save.measured}});
  base::log::info("train", "{}", interval.sentence);
}

}  // namespace trireme::train
