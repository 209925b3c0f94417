// SPDX-License-Identifier: Apache-2.0
#include "chunks.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/unit_chunks.hpp"

#include "parts.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using device::Purpose;
using layout::Axis;

RunChunks run_chunks(const model::ModelConfig& model, const sharding::Options& sharding,
                     const ScheduleOptions& schedule) {
  if (!sharding.takes_units_in_turn()) {
    const int stages = sharding.mesh.degree(Axis::pipeline);
    const auto stage =
        static_cast<std::size_t>(sharding.mesh.coordinate(Axis::pipeline, sharding.rank));
    return {placement_of(schedule, stages), chunk_layers(model, schedule, stages)[stage]};
  }
  auto units = layout::unit_chunks(model.num_hidden_layers);
  return {{.stages = 1, .virtual_stages = static_cast<int>(units.size())}, std::move(units)};
}

bool masks_documents(const EngineOptions& options) {
  if (options.schedule.document_mask == DocumentMask::no) return false;
  const auto chunks = run_chunks(options.model, options.sharding, options.schedule);
  return std::any_of(chunks.layers.begin(), chunks.layers.end(),
                     [](const auto& layers) { return layers.end > layers.begin; });
}

/// With one stage there is nothing to overlap: each backward right after its forward holds the
/// fewest activations, and a table shared by embedding and head gets its gradients in one order.
layout::Schedule schedule_of(const model::ModelConfig& model, const sharding::Options& sharding,
                             const ScheduleOptions& asked) {
  if (sharding.takes_units_in_turn()) {
    const auto chunks = run_chunks(model, sharding, asked).placement.virtual_stages;
    return layout::breadth_first(chunks, asked.micro_batches);
  }
  const int stages = sharding.mesh.degree(Axis::pipeline);
  const auto kind = stages == 1 && asked.virtual_stages == 1
                        ? layout::ScheduleKind::one_forward_one_backward
                        : asked.kind;
  return base::value_or_throw(
      layout::make_schedule(kind, stages, asked.micro_batches, asked.virtual_stages));
}

void Engine::Parts::make_chunks() {
  const auto [placement, layers] = run_chunks(options.model, options.sharding, options.schedule);
  const ChunkMessages::Shape shape{context.local_rows(), options.model.hidden_size, context.dtype};
  const bool one_by_one = options.sharding.takes_units_in_turn();
  chunks.reserve(layers.size());
  int layers_before = 0;
  for (int chunk = 0; chunk < placement.virtual_stages; ++chunk) {
    const auto index = static_cast<std::size_t>(chunk);
    const layout::ChunkPlace place{my_stage(), chunk};
    auto needs = buffers[index];
    // Backward is in two neighbouring chunks at once: all others' gradients take turns in two
    // rings.
    const bool shares = one_by_one && chunk > 1 && needs.output_gradients > 0;
    if (shares) needs.output_gradients = 0;
    messages.emplace_back(
        groups.on(Axis::pipeline),
        ChunkMessages::Places{placement.previous(place), place, placement.next(place)}, shape,
        needs, passes(), memory.of(Purpose::communication));
    if (shares) messages.back().share_output_gradients(messages[index - 2]);
    // The chunk before, if it is on this stage, too, is the stage's chunk before.
    if (placement.previous(place).stage == my_stage())
      messages[index - 1].hand_over_to(messages[index]);
    const layers::Chunk::Role role{layers[index], messages.back().is_first(),
                                   messages.back().is_last(), layers_before};
    layers_before += layers[index].end - layers[index].begin;
    chunk_places.push_back(role.places());
    chunks.emplace_back(context, stage, role, buffers[index], memory.of(Purpose::activations),
                        memory.of(Purpose::parameters),
                        one_by_one && chunk > 0 ? &chunks.front() : nullptr);
  }
}

}  // namespace trireme::engine
