// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/axis_groups.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/engine/memory.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/engine/outcomes.hpp"
#include "trireme/engine/state_parts.hpp"
#include "trireme/layout/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace trireme::engine {

/// Tokens of one micro-batch for the caller to fill: host memory, whatever the device. i32
/// [micro_batch * rank_tokens] each; of each sequence those of layout::token_runs.
struct TokenBuffers {
  device::Tensor tokens;
  device::Tensor targets;
  /// First token of its sequence that each token attends to (layers::MicroBatch); 0 until the
  /// caller says otherwise. Empty where sample_parts() has none.
  device::Tensor first_keys;
  /// Among all sequences that training ever draws, the first of this micro-batch.
  std::int64_t first_sequence = 0;
};

/// Parts of samples that a rank reads: of the pipeline's stages the first embeds tokens and the
/// last compares with targets; those between read neither. With a document mask all that have
/// layers read where documents begin.
struct SampleParts {
  bool tokens = false;
  bool targets = false;
  bool first_keys = false;
};

/// Engine that runs the steps of one rank: micro-batches through its chunks in the order of the
/// schedule, gradients summed over the data-parallel ranks by bucket while backward still computes,
/// and the update of the rank's own elements. Over measuring memory, measuring kernels and dry-run
/// groups the same code measures instead.
class Engine {
 public:
  Engine(const EngineOptions& options, const comm::AxisGroups& groups, device::Kernels& kernels,
         Memory& memory);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Initial values from the seed.
  void initialise();
  /// Buffers for the tokens of micro-batch `index`, for the caller to fill before a step or an
  /// evaluation; once this returns, former tokens are no longer needed. Only what sample_parts()
  /// says is read.
  TokenBuffers& batch(int index);
  SampleParts sample_parts() const;
  /// Says how many targets of the next step are not left out, over all ranks. Where nobody does,
  /// the ranks that have them count them together before it.
  void expect_tokens(std::int64_t count);

  /// Whether it has gradients and an optimizer.
  bool trains() const;

  // A training step is these three, in this order; each is collective over all ranks.

  /// Forward and backward of all micro-batches in the order of the schedule. Reductions of
  /// gradients begin while it runs.
  ScheduleOutcome run_schedule();
  /// Waits for the reductions, runs the remaining ones, and sums up loss and norm over all ranks:
  /// the only time in a step that hosts wait for each other.
  ReduceOutcome reduce_gradients();
  /// Clips, updates the elements that this rank owns, gathers those of others, unless layers do
  /// when they read them: the next forward, or whatever reads parameters before it, waits for
  /// gathers that are under way.
  UpdateOutcome update(const Update& step);

  /// Collective over all ranks. Runs forward only, without dropout. Returns the sum of the losses
  /// of all counted targets. On the last stage `seen` is called with each completed micro-batch, in
  /// order.
  EvaluationOutcome evaluate(const std::function<void(int)>& seen = {});

  // Functions of the last stage only.

  /// Logits of the last micro-batch that evaluate() has seen: [rows, local vocabulary] in the
  /// compute type. Collective over the tensor-parallel ranks. Needs KeepLogits::yes.
  device::Tensor logits();
  std::int64_t local_vocabulary() const;
  std::int64_t first_token() const;
  bool is_last_stage() const;
  /// Whether this is the last stage, and there are logits().
  bool keeps_logits() const;

  /// Training state of this rank (masters and moments), as boxes.
  std::vector<StatePart> state_parts();
  /// The same state once over all data-parallel ranks, as runs of memory: of each bucket with
  /// sharding().saved_pieces() this rank's data-parallel shard, at every ZeRO level, for each of
  /// state_prefixes(), f32; where there is any, its shard of owner_states(), f32 [shard elements].
  /// In the order of saved_buckets(); empty shards are left out.
  std::vector<device::Tensor> saved_shards();
  /// Collective. Updates the parameters after the values of state_parts() were overwritten with
  /// those of after update `step` (0: before the first).
  void state_changed(std::int64_t step);
  std::vector<ParameterPart> parameter_parts();
  /// Hash of the bits of each of parameter_parts(), in their order; of training engines. The host
  /// waits once. Collective over the data-parallel ranks where they divide parameters.
  std::vector<std::uint64_t> parameter_hashes();
  /// Collective over all ranks. True if the two copies of a tied table (first and last stage)
  /// differ in this rank's data-parallel shard of masters and moments, which is a defect.
  bool tied_copies_differ();

  /// Parts of steps that were captured so far, their graphs (with tensor parallelism one between
  /// any two collectives, with gathers of parameters in forward one between their waits), launches
  /// of a part, and device memory that graphs took, beside all arenas.
  struct GraphUse {
    std::size_t captured = 0;
    std::size_t graphs = 0;
    std::size_t launched = 0;
    std::size_t bytes = 0;
  };
  GraphUse graph_use() const;

  const layout::Schedule& schedule() const;
  /// Views of the parameters of this rank, in the compute type: those of the last update, once
  /// read_parameters() or an evaluation has followed it. Where data-parallel ranks divide them,
  /// they have values under leases alone.
  const model::StageParameters& parameters() const;
  /// Gives leases of parameters() to the pass of read_parameters().
  layers::WeightSource& weights() const;
  /// Runs a forward pass between steps, with the stage's places in the order of forward, each of
  /// which it leases once. Collective over the data-parallel ranks where they divide parameters.
  void read_parameters(const std::function<void()>& pass) const;
  const sharding::Sharding& sharding() const;
  const EngineOptions& options() const;
  /// Samples of a step, over all data-parallel ranks.
  std::int64_t global_batch() const;
  /// The device of its tensors, among them those whose home is host memory: kernels reach these
  /// only while the engine updates them.
  device::Device& device() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::engine
