// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/plan.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::device::cudnn {
namespace {

/// Most engines to try: the library ranks a handful, and more would take minutes.
constexpr std::int64_t most_engines = 8;

bool repeats(const Descriptor& config) {
  const auto engines = config.get_descriptors(Attribute::config_engine, Kind::engine, 1);
  if (engines.empty()) return false;
  const auto notes = engines.front().get_notes(Attribute::engine_numerical_notes);
  return std::find(notes.begin(), notes.end(), NumericalNote::nondeterministic) == notes.end();
}

std::vector<Descriptor> engines_for(const Api& api, const Descriptor& graph, HeuristicsMode mode,
                                    const Target& target) {
  Descriptor heuristics(api, Kind::engine_heuristics);
  heuristics.set(Attribute::heuristics_graph, graph).set(Attribute::heuristics_mode, mode);
  if (target.described != nullptr) {
    heuristics.set(Attribute::heuristics_device, *target.described);
  }
  heuristics.finalize();
  return heuristics.get_descriptors(Attribute::heuristics_results, Kind::engine_config,
                                    most_engines);
}

Descriptor ready(const Api& api, const Descriptor& config, const Target& target) {
  Descriptor plan(api, Kind::execution_plan);
  if (target.handle != nullptr) plan.set_handle(Attribute::plan_handle, target.handle);
  if (target.described != nullptr) plan.set(Attribute::plan_device, *target.described);
  plan.set(Attribute::plan_config, config).finalize();
  return plan;
}

}  // namespace

base::Status Plan::take(Descriptor config, const Target& target, const Limits& limits) {
  if (limits.bits == AttentionBits::repeatable && !repeats(config)) {
    return base::Failure{base::ExitCode::topology, "an engine does not repeat bit by bit"};
  }
  auto plan = ready(*api_, config, target);
  const auto bytes = static_cast<std::size_t>(plan.get_int64(Attribute::plan_workspace_size));
  if (bytes > limits.most_workspace_bytes) {
    return base::Failure{
        base::ExitCode::topology,
        base::format("an engine takes {} of workspace and may have {}", base::bytes_text(bytes),
                     base::bytes_text(limits.most_workspace_bytes))};
  }
  config_ = std::move(config);
  plan_ = std::move(plan);
  workspace_bytes_ = bytes;
  return {};
}

base::Result<Plan> Plan::make(const Api& api, Graph graph, const Target& target,
                              const Limits& limits) {
  std::vector<std::string> reasons;
  try {
    auto operations = graph.finish(target.handle);
    Plan plan(api, std::move(graph), std::move(operations));
    for (const auto mode : {HeuristicsMode::fastest_first, HeuristicsMode::fallback}) {
      for (auto& config : engines_for(api, plan.operations_, mode, target)) {
        try {
          const auto status = plan.take(std::move(config), target, limits);
          if (status.ok()) return plan;
          reasons.push_back(status.failure().text);
        } catch (const base::Error& error) {
          reasons.emplace_back(error.what());
        }
      }
    }
  } catch (const base::Error& error) {
    reasons.emplace_back(error.what());
  }
  if (reasons.empty()) reasons.emplace_back("the library names no engine");
  return base::Failure{base::ExitCode::topology, base::format("{}", base::join(reasons, "; "))};
}

void Plan::run(Handle handle, const std::map<Operand, void*>& addresses, void* workspace) const {
  TRIREME_EXPECT(plan_.has_value(), "a plan is made before anybody has it");
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [operand, address] : addresses) {
    ids.push_back(static_cast<std::int64_t>(operand));
    pointers.push_back(address);
  }
  Descriptor pack(*api_, Kind::variant_pack);
  pack.set_all<std::int64_t>(Attribute::pack_ids, ids)
      .set_pointers(Attribute::pack_pointers, pointers)
      .set_pointers(Attribute::pack_workspace, std::array{workspace})
      .finalize();
  check(*api_, api_->execute(handle, plan_->raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace trireme::device::cudnn
