// SPDX-License-Identifier: Apache-2.0
#include "train/start/fitted_options.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/engine/choose_recompute.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trireme::train {

using layout::Axis;

namespace {

/// Collective. [stage]: memory by which its largest rank passes the limit.
std::vector<std::int32_t> over_by_stage(std::int32_t mebibytes, const sharding::Options& sharding,
                                        comm::ProcessGroup& world) {
  const auto& mesh = sharding.mesh;
  std::vector<std::int32_t> over(static_cast<std::size_t>(mesh.degree(Axis::pipeline)));
  over[static_cast<std::size_t>(mesh.coordinate(Axis::pipeline, sharding.rank))] = mebibytes;
  world.all_reduce({over.data(), device::DType::i32, {mesh.degree(Axis::pipeline)}},
                   comm::ReduceOp::max);
  return over;
}

}  // namespace

engine::EngineOptions fitted_options(const engine::EngineOptions& options,
                                     const config::TrainOptions& keys, const engine::Beside& beside,
                                     comm::ProcessGroup& world) {
  const auto total = [&](const engine::EngineOptions& some) {
    return engine::total_bytes(engine::measure(some, beside));
  };
  if (keys.activation_checkpointing) {
    if (engine::must_fit(options, keys.memory_limit)) {
      comm::agree(world, engine::check_held_activations(options, keys.memory_limit, total));
    }
    return options;
  }
  const auto stage = static_cast<std::size_t>(
      options.sharding.mesh.coordinate(Axis::pipeline, options.sharding.rank));
  auto fitted = options;
  engine::ChosenRecompute chosen;
  // A set frees what it frees on one rank of a stage; where another's update needs the workspace
  // that its layers no longer do, more has to be freed. All ranks go round until all fit.
  for (std::int32_t wanted = 0;;) {
    const auto over = over_by_stage(engine::mebibytes_over(total(fitted), keys.memory_limit),
                                    options.sharding, world);
    if (*std::max_element(over.begin(), over.end()) == 0) break;
    wanted += over[stage];
    chosen = comm::agree(world, engine::choose_recompute(options, wanted, total));
    fitted = engine::with_recompute(options, chosen.recompute);
  }
  base::log::info("train", "{}", chosen.text());
  return fitted;
}

}  // namespace trireme::train
