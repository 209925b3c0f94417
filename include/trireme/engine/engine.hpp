// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/engine/memory.hpp"
#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/model/stage_parameters.hpp"
#include "trireme/optim/optimizer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::engine {

enum class Use { training, evaluation };

/// Memory for the logits of a whole micro-batch: reserved or not (loss and gradients need none).
enum class KeepLogits { no, yes };

/// Capture of micro-batches, once, to launch them as CUDA graphs, where the device can.
enum class CudaGraphs { no, yes };

/// Settings that determine the computation and the memory of a rank.
struct EngineOptions {
  model::ModelConfig model;
  layout::Mesh mesh = layout::Mesh::of(1, 1, 1);
  base::Rank rank{0};
  Use use = Use::training;
  KeepLogits keep_logits = KeepLogits::no;
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  /// Layers of each position of the model; empty for an even assignment.
  std::vector<int> stage_layers;
  /// Sequences of a micro-batch, and micro-batches of one data-parallel rank in a step.
  std::int64_t micro_batch = 1;
  int micro_batches = 1;
  std::int64_t sequence_length = 1;
  device::DType dtype = device::DType::f32;
  /// e4m3: with bf16 as the compute type.
  layers::LinearForward linear_forward = layers::LinearForward::plain;
  /// Copies of weights, with e4m3 alone.
  layers::WeightCopies weight_copies = layers::WeightCopies::for_each_use;
  model::SequenceParallel sequence_parallel = model::SequenceParallel::off;
  layers::Recompute recompute = layers::Recompute::none;
  /// Rows of a micro-batch whose logits exist at once.
  std::int64_t loss_rows = 1024;
  /// 0: every data-parallel rank has all optimizer state; 1: each has its shard.
  int zero_level = 0;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  optim::Rule rule;
  /// Which matrices a rule updates whole, where it updates any.
  model::MatrixSelection matrices;
  /// Of these matrices. Without effect at level 0.
  ownership::Assignment assignment = ownership::Assignment::padded;
  /// Why it is this one; empty where the configuration says which.
  std::string assignment_reason;
  /// Largest global gradient norm; 0: gradients are not clipped.
  double clip_norm = 0.0;
  std::uint64_t seed = 0;
  /// Attention kernels of GPUs; nothing on CPUs.
  std::optional<device::AttentionChoice> gpu_attention;
  /// Training steps only; collectives are graph breaks (docs/decisions/0026).
  CudaGraphs cuda_graphs = CudaGraphs::no;
};

/// Refuses options that do not fit together, with key, value and rule.
base::Status check(const EngineOptions& options);

/// Attention of one micro-batch with a rank's part of the heads.
device::AttentionSize attention_of(const EngineOptions& options);

/// The process groups that the rank is in. Views; `embedding` (first and last stage of one
/// pipeline) may be null when nothing is tied.
struct Groups {
  comm::ProcessGroup* tensor = nullptr;
  comm::ProcessGroup* pipeline = nullptr;
  comm::ProcessGroup* data = nullptr;
  comm::ProcessGroup* embedding = nullptr;
};

/// Tokens of one micro-batch for the caller to fill: host memory, whatever the device. i32
/// [micro_batch * sequence_length] each.
struct TokenBuffers {
  device::Tensor tokens;
  device::Tensor targets;
  /// Among all sequences that training ever draws, the first of this micro-batch.
  std::int64_t first_sequence = 0;
};

struct ScheduleOutcome {
  /// Loss: mean over all counted tokens of the global batch; the same bits on every rank.
  double loss = 0;
  /// Tokens that were counted.
  std::int64_t tokens = 0;
  /// Time spent waiting for messages of other stages, by the host or its device; the device may
  /// report some of it a step late.
  double bubble_seconds = 0;
  /// [stage]: the same of every stage, mean over its data-parallel ranks.
  std::vector<double> stage_bubble_seconds = {};
  /// Time that the computing thread gave to tensor-parallel collectives of activations; nothing on
  /// devices, whose streams wait for them by themselves.
  std::optional<double> tensor_seconds = {};
  /// Time that a device stood still for parameters of other data-parallel ranks, where forward or
  /// what came before it reads them; some of it may be told a step late. Nothing where no group
  /// moves them by itself: the host waits in the update.
  std::optional<double> parameters_seconds = {};
};

struct ReduceOutcome {
  /// Norm over all distinct parameters, each counted once; the same bits on every rank.
  double gradient_norm = 0;
  /// Time that the computing thread spent on reductions: starting them, making progress, waiting.
  /// On a device, the time that it waited for them.
  double exposed_seconds = 0;
  /// Time in which one was under way, hidden or not; nothing on devices, which the host does not
  /// watch.
  std::optional<double> busy_seconds = {};
};

/// Values that an update uses.
struct Update {
  /// Number of the update, from 1: steps that were skipped are none.
  std::int64_t step = 1;
  double learning_rate = 0;
  /// Norm of this step's gradients, as reduce_gradients() returns it: larger ones than
  /// EngineOptions::clip_norm are clipped.
  double gradient_norm = 0;
};

/// Where the computing thread's time in an update went, beside computing. On a device, which the
/// host only tells what to do, these are no times of the update.
struct UpdateOutcome {
  double gather_seconds = 0;   ///< parts of matrices to their owners
  double scatter_seconds = 0;  ///< parts of their directions back
  /// Parameters that other data-parallel ranks have updated (ZeRO level 1). On a device whose
  /// groups move data by themselves they are only started here (ScheduleOutcome).
  double parameters_seconds = 0;
  /// Waits for messages among all of these: nothing hides them.
  double exposed_seconds = 0;
};

struct EvaluationOutcome {
  double loss_sum = 0;
  std::int64_t tokens = 0;
};

/// Part of a logical tensor of training state that a checkpoint must hold, fp32. Like all tensors
/// of an engine, its values lie on the engine's device.
struct StatePart {
  /// "layers.0.attention.q.weight", or "adamw.first_moment/layers.0.attention.q.weight".
  std::string name;
  layout::Shape shape;
  layout::Box box;
  /// [elements of the box]: contiguous.
  device::Tensor values;
  /// Exactly one rank of a data-parallel replica is primary for an element.
  bool primary = true;
};

/// Part of one parameter that a rank has, and of its gradient when it trains: a whole box.
struct ParameterPart {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  device::Tensor values;    // in the compute type
  device::Tensor gradient;  // f32, or empty
  /// Exactly one rank of a data-parallel replica is primary for a box.
  bool primary = true;
};

/// Engine that runs the steps of one rank: micro-batches through its chunks in the order of the
/// schedule, gradients summed over the data-parallel ranks by bucket while backward still computes,
/// and the update of the rank's own elements. Over measuring memory, measuring kernels and dry-run
/// groups the same code measures instead.
class Engine {
 public:
  Engine(const EngineOptions& options, const Groups& groups, device::Kernels& kernels,
         Memory& memory);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Initial values from the seed.
  void initialise();
  /// Buffers for the tokens of micro-batch `index`, for the caller to fill before a step or an
  /// evaluation; once this returns, former tokens are no longer needed.
  TokenBuffers& batch(int index);

  // A training step is these three, in this order; each is collective over all ranks.

  /// Forward and backward of all micro-batches in the order of the schedule. Reductions of
  /// gradients begin while it runs.
  ScheduleOutcome run_schedule();
  /// Waits for the reductions, and runs the remaining ones.
  ReduceOutcome reduce_gradients();
  /// Clips, updates the elements that this rank owns, gathers those of others: the next forward, or
  /// whatever reads parameters before it, waits for gathers that are under way.
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

  /// Training state of this rank (masters and moments), as boxes.
  std::vector<StatePart> state_parts();
  /// The same state once over all data-parallel ranks, as runs of memory: of each bucket with
  /// saved_pieces() this rank's data-parallel shard, at every ZeRO level, for each of
  /// state_prefixes(), f32; where there is any, its shard of owner_states(), f32 [shard elements].
  /// In the order of saved_buckets(); empty shards are left out.
  std::vector<device::Tensor> saved_shards();
  /// Collective. Updates the parameters after the values of state_parts() were overwritten with
  /// those of after update `step` (0: before the first).
  void state_changed(std::int64_t step);
  std::vector<ParameterPart> parameter_parts();
  /// Hash of the bits of each of parameter_parts(), in their order; of training engines. The host
  /// waits once.
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
  /// await_parameters() or an evaluation has followed it.
  const model::StageParameters& parameters() const;
  /// Makes the device's next kernel wait for parameters that other ranks have updated, for readers
  /// of parameters() between steps.
  void await_parameters() const;
  const EngineOptions& options() const;
  /// The device of its tensors.
  device::Device& device() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What else a rank runs in the arenas of its engine, made and run once over what the engine is
/// measured with.
using Beside = std::function<void(Engine&, const Groups&, device::Kernels&, Memory&)>;

/// Bytes that this rank needs: the engine, run over measuring memory for one step, and what stands
/// beside it, if anything.
MemoryUse measure(const EngineOptions& options, const Beside& beside = {});

/// Bytes of a rank's training step, each array counted whole: collectives of activations over tp,
/// messages received over pp, reductions of gradients over dp.
struct StepTraffic {
  std::size_t tensor = 0;
  std::size_t messages = 0;
  std::size_t gradients = 0;
};
/// Computed with the step's own code, over groups that pretend; of training engines.
StepTraffic traffic_of(const EngineOptions& options);

/// GEMMs of linear layers that a step calls on a rank, computed with the step's own code: with
/// repeats, in order, their operands as aligned as in real arenas.
std::vector<device::GemmCall> gemm_calls_of(const EngineOptions& options);

}  // namespace trireme::engine
