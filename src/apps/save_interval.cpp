// SPDX-License-Identifier: Apache-2.0
#include "apps/save_interval.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/save_interval.hpp"
#include "trireme/predict/machine.hpp"

#include <optional>
#include <string>

namespace trireme::apps {
namespace {

constexpr double minute = 60;
constexpr double hour = 3600;

/// The machine, whose file says how often its nodes fail.
base::Result<predict::Machine> failing_machine(const std::string& file) {
  auto machine = predict::read_machine(file);
  if (!machine || machine->site.mtbf_node_days > 0) return machine;
  return base::usage_failure(base::format(
      "checkpoint.every_minutes = auto needs site.mtbf_node_days, which '{}' does not have "
      "(without "
      "failures no interval costs least); add it to the file, with its source, or give minutes",
      file));
}

std::string source_of(const train::SaveCost& save, bool is_of_file) {
  if (save.measured > 0) return base::format("mean of {}", base::counted(save.measured, "save"));
  return is_of_file ? "by node.disk_write, until one is measured"
                    : "a guess of 100 MB/s a rank and 5 GB/s in all, until one is measured";
}

std::string cost_text(const train::SaveCost& save) {
  const auto stall = base::duration_text(save.stall);
  if (save.write == 0) return base::format("stops training for {}", stall);
  return base::format("stops training for {} and is written in {} more", stall,
                      base::duration_text(save.write));
}

/// Everything that an interval follows from but what saves cost in the run.
struct Ground {
  predict::Machine machine;
  schema::Options keys;
  int ranks = 1;
  /// The machine's, or of one whose cores compute, those of the run.
  int nodes = 1;
};

train::SaveInterval interval_by(const Ground& ground, const model::ModelConfig& model,
                                train::SaveCost save) {
  const auto failures =
      plan::failure_times(ground.machine, plan::Tenure::own, ground.nodes).value();
  std::optional<predict::SaveTimes> of_file;
  if (save.measured == 0) {
    of_file = plan::save_times(ground.machine, plan::run_size(ground.keys, model, ground.ranks),
                               ground.nodes);
  }
  if (of_file) save = {.stall = of_file->stall, .write = of_file->write};
  const double minutes = plan::save_interval({save.stall, save.write}, failures) / minute;
  auto sentence = base::format(
      "checkpoint.every_minutes = auto is {:.3g}: a failure every {:.4g} h on {} of {} "
      "(site.mtbf_node_days = {:g}), a save {} ({})",
      minutes, failures.between / hour, base::counted(ground.nodes, "node"), ground.machine.name,
      ground.machine.site.mtbf_node_days, cost_text(save), source_of(save, of_file.has_value()));
  return {.minutes = minutes,
          .failure_hours = failures.between / hour,
          .save = save,
          .sentence = std::move(sentence)};
}

}  // namespace

base::Status check_save_interval(const config::Config& config) {
  if (!config.automatic("checkpoint.every_minutes")) return {};
  const auto machine = failing_machine(config.options().plan.machine);
  return machine ? base::Status{} : machine.failure();
}

train::ChooseInterval interval_chooser(const config::Config& config, int ranks, int nodes) {
  // Read when it is asked: by the first rank alone, once.
  return [keys = config.options(), ranks, nodes, ground = std::optional<Ground>()](
             const model::ModelConfig& model,
             const train::SaveCost& save) mutable -> base::Result<train::SaveInterval> {
    if (!ground) {
      auto machine = failing_machine(keys.plan.machine);
      if (!machine) return machine.failure();
      const bool on_cores = machine->node.computes_on_cores();
      const int of_machine = on_cores ? nodes : plan::nodes_of(*machine, ranks);
      ground = Ground{*std::move(machine), keys, ranks, of_machine};
    }
    return interval_by(*ground, model, save);
  };
}

}  // namespace trireme::apps
