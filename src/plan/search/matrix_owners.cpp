// SPDX-License-Identifier: Apache-2.0
#include "matrix_owners.hpp"

#include "trireme/engine/from_config.hpp"
#include "trireme/plan/time_plan.hpp"

#include <optional>

namespace trireme::plan {

using layout::Axis;

base::Result<engine::EngineOptions> MatrixOwners::options_of(const LayoutChoice& choice) {
  auto keys = with_layout(keys_, choice);
  const auto mesh = choice.mesh();
  if (keys.optimizer.assignment || !optim::traits(optim::rule_from(keys).kind).updates_matrices) {
    return engine::options_from(keys, model_, mesh, base::Rank{0});
  }
  const Key key{choice.tensor, choice.pipeline, choice.data(), choice.zero_level,
                choice.micro_batch};
  {
    const std::lock_guard lock(mutex_);
    const auto found = assignments_.find(key);
    if (found != assignments_.end()) keys.optimizer.assignment = found->second;
  }
  auto options = engine::options_from(keys, model_, mesh, base::Rank{0});
  if (options && !keys.optimizer.assignment) {
    const std::lock_guard lock(mutex_);
    assignments_.try_emplace(key, options->sharding.assignment);
  }
  return options;
}

predict::Workload MatrixOwners::workload(const engine::EngineOptions& options,
                                         const predict::Machine& machine) {
  auto workload = workload_without_matrices(options, machine);
  const auto& sharding = options.sharding;
  if (!optim::traits(sharding.rule.kind).updates_matrices) return workload;
  const auto& schedule = options.schedule;
  const Key key{sharding.mesh.degree(Axis::tensor),
                sharding.mesh.degree(Axis::pipeline),
                sharding.mesh.degree(Axis::data),
                sharding.zero_level,
                static_cast<std::int64_t>(sharding.assignment),
                sharding.sequence_parallel == model::SequenceParallel::on ? 1 : 0,
                schedule.virtual_stages,
                static_cast<std::int64_t>(layout::placement_kind(schedule.kind))};
  std::optional<Work> work;
  {
    const std::lock_guard lock(mutex_);
    const auto found = works_.find(key);
    if (found != works_.end()) work = found->second;
  }
  if (!work) {
    const auto program = workload_of(options, machine).program;
    work = {program.update_flops, program.decomposition_flops};
    const std::lock_guard lock(mutex_);
    works_.try_emplace(key, *work);
  }
  workload.program.update_flops = work->products;
  workload.program.decomposition_flops = work->decompositions;
  return workload;
}

}  // namespace trireme::plan
