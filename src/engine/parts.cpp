// SPDX-License-Identifier: Apache-2.0
// The parts of an engine, in the order in which they are made.
#include "parts.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/simulate.hpp"

#include "chunks.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using device::Purpose;
using layout::Axis;

Engine::Parts::Parts(const EngineOptions& given, const comm::AxisGroups& their_groups,
                     device::Kernels& their_kernels, Memory& their_memory)
    : options(given),
      groups(their_groups),
      kernels(their_kernels),
      memory(their_memory),
      sharding(sharding_of(options)),
      stage(sharding.stage()),
      schedule(schedule_of(options.model, options.sharding, options.schedule)),
      buffers(needed_buffers()),
      graphs(trains() ? options.memory.cuda_graphs : CudaGraphs::no, groups, kernels.device(),
             actions().size()),
      batches(options, graphs, buffers, kernels.device(), memory),
      tensor_watch(kernels.device().is_host() ? kernels.device().stopwatch() : nullptr),
      context{options.model,
              kernels,
              graphs.tensor(),
              memory.of(Purpose::workspace),
              options.numerics.dtype,
              options.schedule.micro_batch,
              rank_tokens(options.schedule, options.sharding.mesh),
              options.sharding.sequence_parallel,
              trains() ? options.memory.recompute : layers::Recompute{layers::Activation::layer},
              options.memory.loss_rows,
              options.numerics.seed,
              options.numerics.linear_forward,
              options.schedule.tensor_overlap},
      resident([this](const model::Place& place) { wait_for_parameters(place); }) {
  context.tensor_watch = tensor_watch.get();
  context.context_parallel = graphs.context();
  make_parameters();
  make_chunks();
  if (options.memory.keep_logits == KeepLogits::yes && messages.back().is_last()) {
    logits =
        memory.of(Purpose::activations)
            .allocate(options.numerics.dtype, {context.rows(), chunks.back().local_vocabulary()});
  }
  if (trains()) make_updates();
  register_arenas(options.model, groups, memory, registrations);
  if (trains()) {
    // Shards of owners lie at offsets of their own.
    const auto offsets = units ? comm::Offsets::own : comm::Offsets::same;
    register_flat(groups, {flat_parameters, offsets}, {flat_gradients, offsets}, registrations);
  }
  make_executor();
  context.progress = [this] {
    if (kernels.device().capturing()) return;
    pipeline().poll();
    if (reducer) reducer->poll();
    if (gather) gather->poll();
    if (gathered) gathered->poll();
  };
}

std::vector<layout::ChunkBuffers> Engine::Parts::needed_buffers() const {
  // A schedule that does not finish has no buffers that suffice.
  base::value_or_throw(layout::simulate(schedule, {}));
  auto needed = layout::chunk_buffers(schedule, my_stage(), passes());
  const bool repeats = trains() && options.memory.cuda_graphs == CudaGraphs::yes;
  return repeats ? layout::with_common_period(std::move(needed)) : needed;
}

void Engine::Parts::make_executor() {
  PipelineExecutor::Completed completed;
  const bool at_the_end = !options.sharding.reduces_micro_batches();
  if (trains() && at_the_end && groups.replicas().size() > 1) {
    completed = [this](const model::Place& place) { reduction().completed(place); };
  }
  executor.emplace(
      PipelineExecutor::Stage{chunks, messages, buffers, std::move(completed), batches, graphs},
      kernels);
  if (!trains() || memory.of(Purpose::batch).is_measuring()) return;
  const int stages = options.sharding.mesh.degree(Axis::pipeline);
  const bool chosen = options.schedule.stage_layers.empty() && stages > 1;
  if (chosen) {
    const auto layers = stage_layers(options.model, options.schedule, stages);
    base::log::debug("engine", "{}", layers.text());
  }
  if (!graphs.wanted() || graphs.made()) return;
  base::log::info("engine", "numerics.cuda_graphs has no effect: {} records no work",
                  kernels.device().name());
}

GradientReducer& Engine::Parts::reduction() {
  TRIREME_EXPECT(reducer.has_value(), "only training reduces gradients");
  return *reducer;
}

PipelineExecutor& Engine::Parts::pipeline() {
  TRIREME_EXPECT(executor.has_value(), "the executor is made last");
  return *executor;
}

void Engine::Parts::make_parameters() {
  context.weights = &resident;
  if (sharding.divides_parameters()) return make_divided_parameters();
  const auto size = stage.flat().size;
  flat_parameters = memory.of(Purpose::parameters).allocate(options.numerics.dtype, {size});
  parameters = flat_parameters;
  if (trains()) {
    own_updates = sharding.updates();
    make_gradients();
  }
  if (units) {
    stage.bind(units->regions({flat_parameters, Units::Extent::whole},
                              {flat_gradients, Units::Extent::ring}));
  } else {
    stage.bind(flat_parameters, flat_gradients);
  }
  if (keeps_weight_copies(options)) {
    context.weight_copies = &weight_copies.emplace(stage, memory.of(Purpose::parameters));
  }
}

void Engine::Parts::make_gradients() {
  auto& arena = memory.of(Purpose::gradients);
  if (options.sharding.divides_gradients()) {
    if (!units) units.emplace(sharding);
    const auto ring = units->size();
    const auto held = own_updates.sizes.elements + own_updates.sizes.matrices;
    flat_gradients = arena.allocate(device::DType::f32, {ring + held});
    gradients = {flat_gradients.slice(0, ring, held), own_updates.sizes};
  } else {
    flat_gradients = arena.allocate(device::DType::f32, {stage.flat().size});
    gradients = flat_gradients;
  }
  std::int64_t pieces = 0;
  for (const auto& fused : stage.fused_parameters()) pieces += std::ssize(fused.pieces);
  hashes = arena.allocate(device::DType::i32, {pieces, 2});
}

void Engine::Parts::make_divided_parameters() {
  TRIREME_EXPECT(trains(), "only training divides parameters");
  own_updates = sharding.updates();
  units.emplace(sharding);
  const auto ring = units->size();
  const auto held = own_updates.sizes.elements + own_updates.sizes.matrices;
  flat_parameters = memory.of(Purpose::parameters).allocate(options.numerics.dtype, {ring + held});
  parameters = {flat_parameters.slice(0, ring, held), own_updates.sizes};
  make_gradients();
  const auto in_turn = flat_parameters.slice(0, 0, ring);
  const bool divides = options.sharding.divides_gradients();
  stage.bind(
      units->regions({in_turn, Units::Extent::ring},
                     {flat_gradients, divides ? Units::Extent::ring : Units::Extent::whole}));
  gathered.emplace(sharding, *units, groups.replicas(),
                   GatheredWeights::Shards{parameters, own_updates.buckets, in_turn}, graphs,
                   kernels.device());
  context.weights = &*gathered;
}

/// Renews the copies of weights: parameters change between steps, and when they are loaded, so a
/// step or an evaluation uses no copy of the one before.
void Engine::Parts::renew_weight_copies() {
  if (!weight_copies) return;
  finish_gathers();
  weight_copies->renew(context);
}

std::optional<double> Engine::Parts::take_weights_seconds() {
  if (gathered) return gathered->take_waited_seconds();
  return gather ? gather->take_waited_seconds() : std::nullopt;
}

std::optional<double> Engine::Parts::take_tensor_seconds() const {
  return tensor_watch ? std::optional(tensor_watch->take()) : std::nullopt;
}

SampleParts Engine::Parts::sample_parts() const {
  SampleParts parts;
  for (const auto& chunk : messages) {
    parts.tokens = parts.tokens || chunk.is_first();
    parts.targets = parts.targets || chunk.is_last();
  }
  parts.first_keys = masks_documents(options);
  return parts;
}

Totals Engine::Parts::own_totals(const ExactSum& losses) const {
  Totals own;
  own.bubble_ns.assign(static_cast<std::size_t>(schedule.stages), 0);
  if (!sample_parts().targets || groups.on(Axis::tensor).rank() != 0) return own;
  own.loss = losses;
  own.tokens = batches.counted_tokens();
  return own;
}

float Engine::Parts::loss_scale() const {
  // Steps that are only measured are those of a run, whose loader has counted.
  if (!sample_parts().targets || memory.of(Purpose::batch).is_measuring()) return 1.0F;
  const auto tokens = expected_tokens ? *expected_tokens
                                      : sum_of_counts(groups.replicas(), batches.counted_tokens());
  return static_cast<float>(1.0 / static_cast<double>(std::max<std::int64_t>(tokens, 1)));
}

}  // namespace trireme::engine
