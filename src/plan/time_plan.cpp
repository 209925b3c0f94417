// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/time_plan.hpp"

#include "trireme/base/format.hpp"
#include "trireme/engine/memory.hpp"

#include "search/objective.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::plan {

std::size_t TimePlan::needed_bytes() const {
  if (!shares_memory) return *std::max_element(memory_bytes.begin(), memory_bytes.end());
  return std::accumulate(memory_bytes.begin(), memory_bytes.end(), std::size_t{0});
}

bool TimePlan::fits() const {
  return needed_bytes() <= static_cast<std::size_t>(machine_memory);
}

base::Status check_predicted(const engine::EngineOptions& options) {
  const auto& sharding = options.sharding;
  if (sharding.reduces_micro_batches()) {
    return base::usage_failure(
        "parallel.zero_level = 2 does not go with a machine file (reductions behind each "
        "micro-batch are not predicted yet); leave --machine and plan.machine out, or set "
        "parallel.zero_level=1");
  }
  if (const int context = sharding.mesh.degree(layout::Axis::context); context > 1) {
    return base::usage_failure(base::format(
        "parallel.context = {} does not go with a machine file (gathers of keys and values are not "
        "predicted yet); leave --machine and plan.machine out, or set parallel.context=1",
        context));
  }
  if (options.memory.optimizer_home != engine::Home::device) {
    return base::usage_failure(
        "offload.optimizer = host does not go with a machine file (copies between hosts and "
        "devices are not predicted yet); leave --machine and plan.machine out, or set "
        "offload.optimizer=none");
  }
  if (options.schedule.document_mask == engine::DocumentMask::yes) {
    return base::usage_failure(
        "train.document_mask = true does not go with a machine file (how many keys documents see "
        "is not predicted yet); leave --machine and plan.machine out, or set "
        "train.document_mask=false");
  }
  return {};
}

base::Result<TimePlan> plan_time(const MemoryPlan& plan, const schema::Options& keys,
                                 const std::filesystem::path& machine) {
  const auto& mesh = plan.options.sharding.mesh;
  if (plan.ranks.size() != static_cast<std::size_t>(mesh.world_size())) {
    return base::usage_failure(
        "--machine does not go with --rank (a step waits for all ranks, and the largest decides "
        "whether it fits); leave one of them out");
  }
  if (auto status = check_predicted(plan.options); !status.ok()) return status.failure();
  const auto described = predict::read_machine(machine);
  if (!described) return described.failure();
  const auto step = predict::predict_step(*described, workload_of(plan.options, *described));
  if (!step) return step.failure();
  TimePlan time{.machine = described->name,
                .layout = mesh.text(),
                .step = *step,
                .memory_bytes = {},
                .machine_memory = static_cast<std::int64_t>(memory_for_arrays(*described, keys)),
                .shares_memory = described->node.computes_on_cores(),
                .run = estimate_run(*described, Tenure::own,
                                    run_size(keys, plan.options.model, mesh.world_size()), *step)};
  for (const auto& library : plan.libraries) {
    time.machine_memory -= std::min(time.machine_memory, static_cast<std::int64_t>(library.bytes));
  }
  for (const auto& rank : plan.ranks) time.memory_bytes.push_back(engine::total_bytes(rank.bytes));
  return time;
}

std::string text(const TimePlan& plan) {
  auto text = base::format("predicted on {}: {}all steps: {}\n", plan.machine,
                           predict::text(plan.step), plan::text(plan.run));
  if (plan.fits()) return text;
  return text + base::format("that does not fit: {} of arrays, {} of memory for them\n",
                             base::bytes_text(plan.needed_bytes()),
                             base::bytes_text(static_cast<std::uint64_t>(plan.machine_memory)));
}

base::Json to_json(const TimePlan& plan) {
  base::Json json{{"machine", plan.machine}, {"layout", plan.layout}};
  json.update(predict::to_json(plan.step));
  json["memory_bytes"] = plan.memory_bytes;
  json["fits"] = plan.fits();
  json["run"] = to_json(plan.run);
  return json;
}

}  // namespace trireme::plan
