// SPDX-License-Identifier: Apache-2.0
#include "train/saving/auto_interval.hpp"

#include "trireme/comm/agree.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trireme::train {
namespace {

/// Part of an interval by which another one is worth a change: near the best one, what is lost
/// hardly depends on it.
constexpr double least_change = 0.1;

}  // namespace

double guessed_save_seconds(const model::ModelConfig& model, int ranks) {
  const auto bytes = 12.0 * static_cast<double>(model::parameter_count(model));
  return bytes / std::min(1e8 * ranks, 5e9);
}

void AutoInterval::Saves::take(const SaveRecord& record) {
  stall += record.stall_seconds;
  if (record.asynchronous) write += std::max(0.0, record.write_seconds - record.stall_seconds);
  ++count;
}

base::Result<AutoInterval> AutoInterval::chosen(const schema::CheckpointOptions& keys,
                                                ChooseInterval choose,
                                                const model::ModelConfig& model, int ranks) {
  if (!choose) {
    return base::usage_failure(
        "checkpoint.every_minutes = auto needs a machine (how often nodes fail is said in its "
        "file); give plan.machine, or minutes");
  }
  AutoInterval interval(std::move(choose), model, keys.beside_training());
  auto first = interval.choose_(model, {.stall = guessed_save_seconds(model, ranks)});
  if (!first) return first.failure();
  interval.now_ = *std::move(first);
  return interval;
}

SaveCost AutoInterval::measured() const {
  return {.stall = to_nodes_.mean(to_nodes_.stall) + to_run_.mean(to_run_.stall),
          .write = to_nodes_.mean(to_nodes_.write) + to_run_.mean(to_run_.write),
          .measured = to_run_.count};
}

bool AutoInterval::took(const SaveRecord& record) {
  // The last save of a start, for which training waits, is none that the clock asks for.
  if (record.asynchronous != beside_training_) return false;
  (record.tier == SaveRecord::Tier::nodes ? to_nodes_ : to_run_).take(record);
  if (to_run_.count == 0) return false;
  auto next = choose_(model_, measured());
  if (!next || std::fabs(next->minutes - now_.minutes) <= least_change * now_.minutes) return false;
  now_ = *std::move(next);
  return true;
}

std::unique_ptr<AutoInterval> agreed_interval(const config::Config& config,
                                              const ChooseInterval& choose,
                                              const model::ModelConfig& model,
                                              comm::ProcessGroup& world) {
  if (!config.automatic("checkpoint.every_minutes")) return nullptr;
  std::unique_ptr<AutoInterval> interval;
  base::Status status;
  if (world.rank() == 0) {
    auto chosen = AutoInterval::chosen(config.options().checkpoint, choose, model, world.size());
    if (chosen) {
      interval = std::make_unique<AutoInterval>(std::move(chosen).value());
    } else {
      status = chosen.failure();
    }
  }
  comm::agree(world, status);
  return interval;
}

}  // namespace trireme::train
