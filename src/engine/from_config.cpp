// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/from_config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/sharding/assignment.hpp"

namespace trireme::engine {

using layout::Axis;

layout::ParallelArrangement arrangement_of(const config::Config& config,
                                           const model::ModelConfig& model) {
  auto arrangement = config::arrangement(config.options());
  model::describe(model, arrangement);
  // `auto` means one micro-batch on each replica.
  if (!arrangement.global_batch) arrangement.micro_batches = 1;
  return arrangement;
}

base::Result<layout::Mesh> mesh_from(const config::Config& config, const model::ModelConfig& model,
                                     int world_size) {
  return layout::arrange(arrangement_of(config, model), world_size);
}

namespace {

base::Status check(const config::Config& config, const layout::ParallelArrangement& arrangement) {
  const auto found = layout::violations(arrangement);
  if (found.empty()) return {};
  return base::usage_failure(layout::text(found.front(), config::citation(config, arrangement)));
}

/// Copies of weights, which are worth their memory where a step reads weights more than once.
layers::WeightCopies weight_copies_of(const EngineOptions& options) {
  const bool once =
      options.schedule.micro_batches == 1 && options.memory.recompute != layers::Recompute::full;
  return once ? layers::WeightCopies::for_each_use : layers::WeightCopies::kept;
}

/// A chunk of rows reads and writes the whole gradient of the head, 8 bytes an element, for 2 *
/// rows operations an element. A core does 10 operations in the time of a byte, a GPU (H200) 200.
std::int64_t loss_rows_of(const config::NumericsOptions& numerics) {
  return numerics.on_gpus() ? 8192 : 1024;
}

}  // namespace

device::DType compute_type(const config::NumericsOptions& numerics) {
  return numerics.precision == config::Precision::fp32 ? device::DType::f32 : device::DType::bf16;
}

std::optional<device::AttentionChoice> gpu_attention(const config::NumericsOptions& numerics) {
  if (!numerics.on_gpus()) return std::nullopt;
  device::AttentionChoice choice;
  if (numerics.attention == config::AttentionKernels::own) choice.by = device::AttentionBy::own;
  if (numerics.attention == config::AttentionKernels::cudnn) {
    choice.by = device::AttentionBy::cudnn;
  }
  if (numerics.deterministic) choice.bits = device::AttentionBits::repeatable;
  return choice;
}

base::Status check_attention(const config::Options& keys, const model::ModelConfig& model) {
  const auto choice = gpu_attention(keys.numerics);
  if (!choice) return {};
  EngineOptions options;
  options.model = model;
  options.numerics.dtype = compute_type(keys.numerics);
  options.schedule.micro_batch = keys.train.micro_batch;
  options.schedule.sequence_length = keys.train.sequence_length;
  return device::check_attention(attention_of(options), *choice);
}

base::Result<EngineOptions> options_from(const config::Config& config,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank) {
  auto arrangement = arrangement_of(config, model);
  arrangement.tensor = mesh.degree(Axis::tensor);
  arrangement.pipeline = mesh.degree(Axis::pipeline);
  arrangement.data = mesh.degree(Axis::data);
  if (auto status = check(config, arrangement); !status.ok()) return status.failure();

  const auto& keys = config.options();
  const auto& train = keys.train;
  const auto& parallel = keys.parallel;
  const auto& numerics = keys.numerics;
  const auto replica_batch = train.micro_batch * mesh.degree(Axis::data);
  EngineOptions options;
  options.model = model;
  options.sharding.mesh = mesh;
  options.sharding.rank = rank;
  options.schedule.kind = parallel.schedule;
  options.schedule.virtual_stages = parallel.virtual_stages;
  for (const auto layers : parallel.stage_layers) {
    options.schedule.stage_layers.push_back(static_cast<int>(layers));
  }
  options.schedule.micro_batch = train.micro_batch;
  options.schedule.micro_batches =
      static_cast<int>(train.global_batch.value_or(replica_batch) / replica_batch);
  options.schedule.sequence_length = train.sequence_length;
  options.numerics.dtype = compute_type(numerics);
  options.numerics.linear_forward = numerics.precision == config::Precision::fp8
                                        ? layers::LinearForward::e4m3
                                        : layers::LinearForward::plain;
  options.sharding.sequence_parallel = parallel.sequence && mesh.degree(Axis::tensor) > 1
                                           ? model::SequenceParallel::on
                                           : model::SequenceParallel::off;
  options.memory.recompute = train.activation_checkpointing;
  options.memory.weight_copies = weight_copies_of(options);
  options.memory.loss_rows = loss_rows_of(numerics);
  options.sharding.zero_level = parallel.zero_level;
  options.sharding.bucket_bytes = parallel.bucket_bytes;
  options.sharding.rule = optim::rule_from(keys);
  options.sharding.matrices = {keys.optimizer.adamw_matrices, keys.optimizer.per_head};
  options.numerics.clip_norm = keys.optimizer.clip_norm;
  options.numerics.seed = static_cast<std::uint64_t>(train.seed);
  options.numerics.gpu_attention = gpu_attention(numerics);
  if (keys.optimizer.assignment) {
    options.sharding.assignment = *keys.optimizer.assignment;
  } else if (options.sharding.divides_matrices()) {
    const auto sequences =
        options.schedule.micro_batch * options.schedule.micro_batches * mesh.degree(Axis::data);
    sharding::choose_assignment(
        options.sharding, model, options.numerics.dtype,
        {.parameters = static_cast<double>(model::parameter_count(model)),
         .tokens = static_cast<double>(sequences * options.schedule.sequence_length),
         .parameter_bytes = static_cast<int>(device::size_of(options.numerics.dtype)),
         .micro_batches = static_cast<double>(options.schedule.micro_batches)},
        options.numerics.gpu_attention.has_value());
  }
  options.memory.cuda_graphs = numerics.cuda_graphs ? CudaGraphs::yes : CudaGraphs::no;
  if (auto status = check(options); !status.ok()) return status.failure();
  return options;
}

}  // namespace trireme::engine
