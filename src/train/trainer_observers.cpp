// SPDX-License-Identifier: Apache-2.0
// Actions after a finished step that do not change the training: start-up phases, memory, the
// report and the job's comment.
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/train/trainer.hpp"

#include "nonfinite_steps.hpp"
#include "train/rank_times_recorder.hpp"

#include <algorithm>

namespace trireme::train {

void Trainer::say_where() const {
  const auto& binding = cluster_.binding;
  // Written to every rank's log file, where people look for the rank that Slurm calls task 5.
  base::log::write_once(
      base::log::Level::debug, "runtime",
      base::format("rank {} is task {} of {}{}; CPUs {} ({}){}", cluster_.rank.value(),
                   cluster_.task, runtime::name(cluster_.identity.launcher),
                   cluster_.identity.job.empty() ? "" : " in job " + cluster_.identity.job,
                   binding.cpus, binding.reason,
                   binding.gpu_bus_id.empty() ? "" : ", GPU " + binding.gpu_bus_id));
}

void Trainer::say_memory() const {
  auto& device = kernels_.device();
  if (device.is_host()) return;
  report_->memory(progress_.step, {.device = device.name(),
                                   .arenas = engine::total_bytes(memory_->peak_bytes()),
                                   .libraries = kernels_.library_memory(),
                                   .graphs = engine_->graph_use().bytes,
                                   .taken = device.taken_bytes()});
}

void Trainer::say_arenas() const {
  const auto bytes = memory_->peak_bytes();
  std::string parts;
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    parts += base::format("{} {}, ", device::name(engine::all_purposes[index]), bytes[index]);
  }
  report_->arenas(progress_.step, memory_->capacity_bytes(), bytes);
  // Written to every rank's log file: the summary of trireme plan.
  base::log::write_once(
      base::log::Level::debug, "train",
      base::format("arenas held at most {}in all {} bytes", parts, engine::total_bytes(bytes)));
}

void Trainer::observe(const StepRecord& record) {
  observe_start_up(record);
  observe_memory();
  rank_times_->add(record);
  if (options_.on_step) options_.on_step(record);
  longest_batch_seconds_ = std::max(longest_batch_seconds_, record.seconds);
  if (record.updated) {
    report_->step(record);
  } else {
    report_->skipped(record, nonfinite_->in_a_row());
  }
  if (comment_) {
    comment_->offer(base::format("step {}/{}, loss {}", record.step, keys_.train.steps,
                                 base::fixed_text(record.loss, 4)));
  }
}

void Trainer::observe_start_up(const StepRecord& record) {
  if (started_) return;
  started_ = true;
  cluster_.start_up.reached("first step");
  report_->started_up(record.step, cluster_.start_up.slowest(*cluster_.world));
  say_memory();
  report_->arenas(record.step, memory_->capacity_bytes(), memory_->peak_bytes());
}

void Trainer::observe_memory() {
  // Micro-batches are captured in the first steps: the memory of their graphs is known when no more
  // are captured.
  const auto captured = engine_->graph_use().captured;
  if (captured != graphs_seen_) {
    graphs_seen_ = captured;
  } else if (captured != graphs_told_) {
    graphs_told_ = captured;
    say_memory();
  }
}

}  // namespace trireme::train
