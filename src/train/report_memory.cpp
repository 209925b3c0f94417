// SPDX-License-Identifier: Apache-2.0
// Resources in the report: a device's memory, the arenas, processors.
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/train/report.hpp"

#include <algorithm>
#include <utility>

namespace trireme::train {

using base::Json;

std::size_t MemoryRecord::rest() const {
  auto known = arenas + graphs;
  for (const auto& each : libraries) known += each.bytes;
  return taken - std::min(taken, known);
}

void Report::memory(std::int64_t step, const MemoryRecord& record) {
  std::string parts = base::format("arenas {}, ", base::bytes_text(record.arenas));
  Json libraries = Json::object();
  for (const auto& each : record.libraries) {
    libraries[each.library] = each.bytes;
    parts += base::format("{} {}, ", each.library, base::bytes_text(each.bytes));
  }
  if (record.graphs > 0) parts += base::format("CUDA graphs {}, ", base::bytes_text(record.graphs));
  base::log::local::info("train", "{} after step {}: {}driver's context and other programs {}",
                         record.device, step, parts, base::bytes_text(record.rest()));
  if (!settings_.speaks) return;
  append({{"kind", "event"},
          {"event", "memory"},
          {"step", step},
          {"arena_bytes", record.arenas},
          {"library_bytes", libraries},
          {"graph_bytes", record.graphs},
          {"taken_bytes", record.taken}});
}

void Report::arenas(std::int64_t step, const engine::MemoryUse& planned,
                    const engine::MemoryUse& used) {
  if (!settings_.speaks) return;
  const auto by_purpose = [](const engine::MemoryUse& bytes) {
    Json object = Json::object();
    for (const auto purpose : engine::told_purposes(bytes)) {
      object[device::name(purpose)] = bytes[static_cast<std::size_t>(purpose)];
    }
    return object;
  };
  append({{"kind", "event"},
          {"event", "arenas"},
          {"step", step},
          {"planned_bytes", by_purpose(planned)},
          {"used_bytes", by_purpose(used)}});
}

void Report::processors(std::int64_t step, const telemetry::CoresUse& use) {
  if (!settings_.speaks) return;
  Json line{{"kind", "processors"}, {"step", step}};
  line.update(telemetry::to_json(use));
  append(std::move(line));
  const auto hindrance = telemetry::hindrance_of(use);
  hindered_ = hindrance == telemetry::Hindrance::none ? 0 : hindered_ + 1;
  // A compiler of somebody else's comes and goes.
  constexpr int lasting = 2;
  if (hindered_ < lasting || std::exchange(hindrance_is_told_, true)) return;
  base::log::warning("train",
                     "{} over the last {}, and goes on (ranks wait for their cores, and "
                     "others for them); {}",
                     telemetry::hindrance_text(use), base::duration_text(use.seconds),
                     telemetry::hindrance_remedy(hindrance));
}

}  // namespace trireme::train
