// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/host_tier.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/engine/registrations.hpp"
#include "trireme/layers/stage.hpp"
#include "trireme/model/stage_parameters.hpp"
#include "trireme/optim/optimizer.hpp"

#include "engine/data/batches.hpp"
#include "engine/graphs/graphs.hpp"
#include "engine/totals/totals.hpp"
#include "gradients.hpp"
#include "parameter_gather.hpp"
#include "pipeline.hpp"
#include "weights/gathered_weights.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace trireme::engine {

/// Members in the order of their making; some of a training engine alone.
struct Engine::Parts {
  EngineOptions options;
  comm::AxisGroups groups;
  device::Kernels& kernels;
  Memory& memory;
  sharding::Sharding sharding;
  model::StageParameters& stage;
  layout::Schedule schedule;
  std::vector<layout::ChunkBuffers> buffers;  // [chunk]
  Graphs graphs;
  Batches batches;
  /// Null where the device waits by itself.
  std::unique_ptr<device::Stopwatch> tensor_watch;
  layers::StageContext context;
  /// All parameters of the rank; where data-parallel ranks divide them, the ring of units, and its
  /// shards behind that.
  device::Tensor flat_parameters;
  /// All gradients, f32, or likewise a ring and shards; empty for inference.
  device::Tensor flat_gradients;
  device::Tensor hashes;          // i32 [parameter parts, 2], empty for inference
  sharding::Updates own_updates;  // empty for inference
  optim::FlatValues parameters;   // those of own_updates, at least
  optim::FlatValues gradients;    // likewise
  std::optional<Units> units;     // where data-parallel ranks divide parameters or gradients
  std::optional<GatheredWeights> gathered;
  ResidentWeights resident;
  std::vector<std::vector<model::Place>> chunk_places;  // [chunk]: in the order of forward
  std::optional<layers::KeptCopies> weight_copies;
  std::vector<layers::Chunk> chunks;
  std::vector<ChunkMessages> messages;
  device::Tensor logits;
  std::optional<GradientReducer> reducer;
  std::optional<ParameterGather> gather;  // at ZeRO level 1 with several data-parallel ranks
  std::optional<device::HostTier> tier;   // where the optimizer's state is at home in host memory
  std::optional<optim::Optimizer> optimizer;
  std::optional<PipelineExecutor> executor;
  std::optional<std::int64_t> expected_tokens;  // of the next step
  Totals totals;                                // of the step so far
  /// Memory that collectives and messages work in; ends before memory and groups do.
  Registrations registrations;

  Parts(const EngineOptions& given, const comm::AxisGroups& their_groups,
        device::Kernels& their_kernels, Memory& their_memory);

  bool trains() const { return options.use == Use::training; }
  layout::Passes passes() const {
    return trains() ? layout::Passes::both : layout::Passes::forward_alone;
  }
  int my_stage() const {
    return options.sharding.mesh.coordinate(layout::Axis::pipeline, options.sharding.rank);
  }
  const std::vector<layout::Action>& actions() const {
    return schedule.actions[static_cast<std::size_t>(my_stage())];
  }
  GradientReducer& reduction();
  optim::Optimizer& updates();
  /// The device of all tensors, at home or not.
  device::Device& device() { return tier ? *tier : kernels.device(); }
  PipelineExecutor& pipeline();

  /// [chunk]
  std::vector<layout::ChunkBuffers> needed_buffers() const;
  void make_parameters();
  void make_divided_parameters();
  /// Memory for gradients, and for hashes of all shard pieces.
  void make_gradients();
  void make_chunks();
  void make_updates();
  void tell_of_gradients();
  void make_executor();
  void say_rules() const;
  /// Renews the copies of weights, before micro-batches read them.
  void renew_weight_copies();
  /// Time since the last call; nothing where it is not measured.
  std::optional<double> take_tensor_seconds() const;
  SampleParts sample_parts() const;
  /// Part of a step's totals that the rank has: of a stage's tensor-parallel ranks the first has
  /// loss and tokens, of which only the last stage has any.
  Totals own_totals(const ExactSum& losses) const;
  /// Factor on the loss of a token. Collective over the data-parallel ranks of the last stage,
  /// where nobody has said how many tokens there are; other stages compute no loss.
  float loss_scale() const;
  /// Starts the gathers of parameters that other ranks have updated, or forgets those that are
  /// gathered when layers read them.
  void parameters_changed();
  /// Waits for the gathers: for whatever reads or writes parameters elsewhere than layers' forward.
  void finish_gathers();
  /// Runs the actions' passes, whose weights are gathered as they read them.
  template <typename Run>
  void with_weights(layout::Passes passes, const Run& run) {
    if (gathered) gathered->begin(reading_order(actions(), chunk_places, passes));
    run();
    if (gathered) gathered->finish();
  }
  /// Time that weights kept forward and backward waiting, since the last call; nothing where none
  /// are gathered then.
  std::optional<double> take_weights_seconds();
  /// Waits for the gathers of parameters that forward is about to read.
  void wait_for_parameters(const model::Place& place);
};

}  // namespace trireme::engine
