// SPDX-License-Identifier: Apache-2.0
#include "train/profile.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/record/steady_clock.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::train {

namespace fs = std::filesystem;
using telemetry::SpanClock;

namespace {

/// The same moment by the clock of spans and by the time of day.
struct Moment {
  SpanClock::time_point time;
  std::int64_t unix_ns = 0;
};

/// The first rank's time, on all ranks.
Moment time_of_first(comm::ProcessGroup& world) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  Moment moment{SpanClock::now(), std::chrono::nanoseconds(since_1970).count()};
  std::string bytes(sizeof moment, '\0');
  std::memcpy(bytes.data(), &moment, sizeof moment);
  bytes = comm::broadcast_bytes(world, bytes);
  std::memcpy(&moment, bytes.data(), sizeof moment);
  return moment;
}

}  // namespace

void Profile::ask(std::int64_t count, std::int64_t next) {
  if (count > 0 && !recording_) steps_ = config::StepRange{next, next + count - 1};
}

void Profile::before(std::int64_t step) {
  if (recording_ || !steps_ || !steps_->holds(step)) return;
  auto& world = *cluster_.world;
  const auto offset = comm::measure_clock_offset(world, record::steady_clock_name());
  const auto origin = time_of_first(world);
  recording_ = std::make_unique<Recording>();
  recording_->offset = offset;
  recording_->origin = origin.time;
  recording_->origin_unix_ns = origin.unix_ns;
  recording_->begin = SpanClock::now();
  recording_->first_step = step;
  start_gpu(*recording_);
}

void Profile::start_gpu(Recording& recording) const {
  if (gpu_ == Gpu::none) return;
  auto started = device::start_gpu_activity();
  if (started) {
    recording.gpu = std::move(started).value();
  } else {
    base::log::warning("train", "{} (the trace is without what the GPU does)",
                       started.failure().text);
  }
}

void Profile::stop_gpu(Recording& recording) {
  if (!recording.gpu) return;
  try {
    recording.of_gpu = recording.gpu->stop();
  } catch (const base::Error& error) {
    base::log::local::warning("train", "{} (the trace is without what the GPU does)", error.what());
  }
  recording.gpu.reset();
}

void Profile::after(std::int64_t step) {
  if (!recording_) return;
  recording_->last_step = step;
  if (steps_ && step >= steps_->last) finish();
}

void Profile::finish() {
  if (!recording_) return;
  const auto recording = std::move(recording_);
  stop_gpu(*recording);
  recording->recorder.stop();
  steps_.reset();
  const auto trace = trace_of(*recording);
  base::Status written;
  try {
    write(trace);
  } catch (const base::Error& error) {
    base::log::local::warning("train", "{} (training goes on, without a trace); make room",
                              error.what());
    written = base::Failure{error.code(), error.what()};
  }
  std::int32_t failed = written ? 0 : 1;
  cluster_.world->all_reduce(device::Tensor(&failed, device::DType::i32, {1}), comm::ReduceOp::max);
  if (failed != 0 || cluster_.rank.value() != 0) return;
  const auto place = folder_ / base::format("steps-{}-{}", trace.first_step, trace.last_step);
  std::error_code error;
  // Steps that a run makes again are recorded again.
  fs::remove_all(place, error);
  fs::rename(fs::path(place) += ".partial", place, error);
  if (error) {
    base::log::warning("train", "cannot rename '{}.partial': {} (training goes on)", place.string(),
                       error.message());
    return;
  }
  base::log::info("train", "steps {} to {} are recorded in '{}'; trireme trace {} shows them",
                  trace.first_step, trace.last_step, place.string(),
                  base::shell_word(folder_.parent_path().string()));
}

telemetry::RankTrace Profile::trace_of(const Recording& recording) const {
  const auto end = SpanClock::now();
  const auto offset = comm::measure_clock_offset(*cluster_.world, record::steady_clock_name());
  telemetry::RankTrace trace;
  trace.rank = cluster_.rank.value();
  trace.world_size = cluster_.world->size();
  trace.host = base::log::settings().identity.node;
  const auto& job = cluster_.identity.job;
  trace.job = job.substr(0, job.find('.'));
  trace.origin_unix_ns = recording.origin_unix_ns;
  trace.first_step = recording.first_step;
  trace.last_step = std::max(recording.first_step, recording.last_step);
  for (const auto& axis : cluster_.mesh.axes()) {
    trace.coordinates[layout::short_name(axis.axis)] = cluster_.coordinate(axis.axis);
  }
  trace.clock_error_ns = std::max(recording.offset.error_nanoseconds, offset.error_nanoseconds);
  // Clocks of two nodes drift apart: the offset grows evenly between the two measurements.
  const double whole = std::max<double>(1.0, static_cast<double>((end - recording.begin).count()));
  const auto drift = static_cast<double>(offset.nanoseconds - recording.offset.nanoseconds);
  const auto since_origin = [&](SpanClock::time_point time) {
    const double share = static_cast<double>((time - recording.begin).count()) / whole;
    const auto ahead = recording.offset.nanoseconds + static_cast<std::int64_t>(share * drift);
    return (time - recording.origin) / std::chrono::nanoseconds(1) - ahead;
  };
  telemetry::take_spans(recording.recorder, since_origin, trace);
  trace.left_out += recording.of_gpu.left_out;
  trace.gpu_events = recording.of_gpu.events;
  const auto by_origin = [&](std::int64_t nanoseconds) {
    return since_origin(SpanClock::time_point(std::chrono::nanoseconds(nanoseconds)));
  };
  for (auto& event : trace.gpu_events) {
    event.begin = by_origin(event.begin);
    event.end = by_origin(event.end);
  }
  return trace;
}

void Profile::write(const telemetry::RankTrace& trace) const {
  const auto folder =
      folder_ / base::format("steps-{}-{}.partial", trace.first_step, trace.last_step);
  base::success_or_throw(base::make_folders_durably(folder));
  base::write_file_durably(folder / telemetry::trace_file_name(trace.rank),
                           telemetry::kineto_text(trace));
  if (trace.left_out > 0) {
    base::log::local::warning("train",
                              "{} spans are left out of the trace (a rank records {} at most); "
                              "record fewer steps",
                              trace.left_out, telemetry::SpanRecorder::most_spans);
  }
}

}  // namespace trireme::train
