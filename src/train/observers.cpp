// SPDX-License-Identifier: Apache-2.0
#include "train/observers.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <chrono>

namespace trireme::train {

void Observers::comment_job(const base::Environment& environment, double interval_seconds) {
  const std::chrono::duration<double> interval(interval_seconds);
  comment_ = std::make_unique<runtime::JobComment>(
      environment, std::chrono::duration_cast<std::chrono::milliseconds>(interval));
}

void Observers::say_where() const {
  const auto& binding = watched_.cluster.binding;
  // Written to every rank's log file, where people look for the rank that Slurm calls task 5.
  base::log::write_once(
      base::log::Level::debug, "runtime",
      base::format(
          "rank {} is task {} of {}{}; CPUs {} ({}){}", watched_.cluster.rank.value(),
          watched_.cluster.task, runtime::name(watched_.cluster.identity.launcher),
          watched_.cluster.identity.job.empty() ? "" : " in job " + watched_.cluster.identity.job,
          binding.cpus, binding.reason,
          binding.gpu_bus_id.empty() ? "" : ", GPU " + binding.gpu_bus_id));
}

void Observers::say_memory(std::int64_t step) const {
  auto& device = watched_.kernels.device();
  if (device.is_host()) return;
  watched_.report.memory(step, {.device = device.name(),
                                .arenas = engine::total_bytes(watched_.memory.peak_bytes()),
                                .libraries = watched_.kernels.library_memory(),
                                .graphs = watched_.engine.graph_use().bytes,
                                .taken = device.taken_bytes()});
}

void Observers::say_arenas(std::int64_t step) const {
  const auto bytes = watched_.memory.peak_bytes();
  std::string parts;
  for (const auto purpose : engine::told_purposes(bytes)) {
    parts +=
        base::format("{} {}, ", device::name(purpose), bytes[static_cast<std::size_t>(purpose)]);
  }
  watched_.report.arenas(step, watched_.memory.capacity_bytes(), bytes);
  // Written to every rank's log file: the summary of trireme plan.
  base::log::write_once(
      base::log::Level::debug, "train",
      base::format("arenas held at most {}in all {} bytes", parts, engine::total_bytes(bytes)));
}

void Observers::reached(std::int64_t step) {
  if (!started_) start_up(step);
  memory(step);
}

void Observers::tell(const StepRecord& record, std::int64_t steps, std::int64_t skipped_in_a_row) {
  if (record.updated) {
    watched_.report.step(record);
  } else {
    watched_.report.skipped(record, skipped_in_a_row);
  }
  if (comment_) {
    comment_->offer(
        base::format("step {}/{}, loss {}", record.step, steps, base::fixed_text(record.loss, 4)));
  }
}

void Observers::start_up(std::int64_t step) {
  started_ = true;
  auto& start_up = watched_.cluster.start_up;
  start_up.reached("first step");
  watched_.report.started_up(step, start_up.slowest(*watched_.cluster.world));
  say_memory(step);
  watched_.report.arenas(step, watched_.memory.capacity_bytes(), watched_.memory.peak_bytes());
}

void Observers::memory(std::int64_t step) {
  // Micro-batches are captured in the first steps: the memory of their graphs is known when no more
  // are captured.
  const auto captured = watched_.engine.graph_use().captured;
  if (captured != graphs_seen_) {
    graphs_seen_ = captured;
  } else if (captured != graphs_told_) {
    graphs_told_ = captured;
    say_memory(step);
  }
}

}  // namespace trireme::train
