// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/from_config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/recompute.hpp"
#include "trireme/engine/choose_recompute.hpp"
#include "trireme/sharding/assignment.hpp"

#include <utility>

namespace trireme::engine {

using layout::Axis;

layout::ParallelArrangement arrangement_of(const config::Config& config,
                                           const model::ModelConfig& model) {
  return arrangement_of(config.options(), model);
}

layout::ParallelArrangement arrangement_of(const config::Options& keys,
                                           const model::ModelConfig& model) {
  auto arrangement = config::arrangement(keys);
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

base::Status check(const layout::ParallelArrangement& arrangement, const layout::Citation& cited) {
  const auto found = layout::violations(arrangement);
  if (found.empty()) return {};
  return base::usage_failure(layout::text(found.front(), cited));
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
  ScheduleOptions schedule;
  schedule.micro_batch = keys.train.micro_batch;
  schedule.sequence_length = keys.train.sequence_length;
  if (keys.train.document_mask) schedule.document_mask = DocumentMask::yes;
  const auto one = layout::Mesh::of(1, 1, 1);
  auto size = attention_of(model, schedule, compute_type(keys.numerics), one);
  size.context = keys.parallel.context;
  return device::check_attention(size, *choice);
}

namespace {

ScheduleOptions schedule_from(const config::Options& keys, const layout::Mesh& mesh) {
  const auto& train = keys.train;
  const auto replica_batch = train.micro_batch * mesh.degree(Axis::data);
  ScheduleOptions schedule;
  schedule.kind = keys.parallel.schedule;
  schedule.virtual_stages = keys.parallel.virtual_stages;
  for (const auto layers : keys.parallel.stage_layers) {
    schedule.stage_layers.push_back(static_cast<int>(layers));
  }
  schedule.micro_batch = train.micro_batch;
  schedule.micro_batches =
      static_cast<int>(train.global_batch.value_or(replica_batch) / replica_batch);
  schedule.sequence_length = train.sequence_length;
  if (train.document_mask) schedule.document_mask = DocumentMask::yes;
  return schedule;
}

NumericsOptions numerics_from(const config::Options& keys) {
  NumericsOptions numerics;
  numerics.dtype = compute_type(keys.numerics);
  numerics.linear_forward = keys.numerics.precision == config::Precision::fp8
                                ? layers::LinearForward::e4m3
                                : layers::LinearForward::plain;
  numerics.clip_norm = keys.optimizer.clip_norm;
  numerics.seed = static_cast<std::uint64_t>(keys.train.seed);
  numerics.gpu_attention = gpu_attention(keys.numerics);
  return numerics;
}

/// All but who owns matrices, which depends on the work of a step.
sharding::Options sharding_from(const config::Options& keys, const layout::Mesh& mesh,
                                base::Rank rank) {
  sharding::Options sharding;
  sharding.mesh = mesh;
  sharding.rank = rank;
  sharding.sequence_parallel = keys.parallel.sequence && mesh.degree(Axis::tensor) > 1
                                   ? model::SequenceParallel::on
                                   : model::SequenceParallel::off;
  sharding.zero_level = keys.parallel.zero_level;
  sharding.bucket_bytes = keys.parallel.bucket_bytes;
  sharding.rule = optim::rule_from(keys);
  sharding.matrices = {keys.optimizer.adamw_matrices, keys.optimizer.per_head};
  return sharding;
}

void assign_matrices(const config::Options& keys, EngineOptions& options) {
  auto& sharding = options.sharding;
  if (keys.optimizer.assignment) {
    sharding.assignment = *keys.optimizer.assignment;
    return;
  }
  if (!sharding.divides_matrices()) return;
  const auto& schedule = options.schedule;
  const auto sequences = global_batch(schedule, sharding.mesh);
  sharding::choose_assignment(
      sharding, options.model, options.numerics.dtype,
      {.parameters = static_cast<double>(model::parameter_count(options.model)),
       .tokens = static_cast<double>(sequences * schedule.sequence_length),
       .parameter_bytes = static_cast<int>(device::size_of(options.numerics.dtype)),
       .micro_batches = static_cast<double>(schedule.micro_batches)},
      options.numerics.gpu_attention.has_value());
}

base::Result<EngineOptions> checked_options(const config::Options& keys,
                                            const model::ModelConfig& model,
                                            const layout::Mesh& mesh, base::Rank rank) {
  EngineOptions options;
  options.model = model;
  options.schedule = schedule_from(keys, mesh);
  options.numerics = numerics_from(keys);
  options.sharding = sharding_from(keys, mesh, rank);
  options.schedule.tensor_overlap = tensor_overlap_of(options);
  options.memory.loss_rows = loss_rows_of(keys.numerics);
  options.memory.optimizer_home =
      keys.offload.optimizer == config::OffloadTo::host ? Home::host : Home::device;
  options.memory.chunk_bytes = keys.offload.chunk_bytes;
  options.memory.cuda_graphs = keys.numerics.cuda_graphs ? CudaGraphs::yes : CudaGraphs::no;
  // With `auto` everything is kept until a stage has chosen (choose_recompute.hpp).
  const auto& entries = keys.train.activation_checkpointing;
  options = with_recompute(
      std::move(options),
      entries ? base::value_or_throw(config::parse_recompute(*entries)) : layers::Recompute{});
  assign_matrices(keys, options);
  if (auto status = check(options); !status.ok()) return status.failure();
  return options;
}

}  // namespace

base::Result<EngineOptions> options_from(const config::Config& config,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank) {
  auto arrangement = arrangement_of(config, model);
  layout::describe(mesh, arrangement);
  if (auto status = check(arrangement, config::citation(config, arrangement)); !status.ok()) {
    return status.failure();
  }
  return checked_options(config.options(), model, mesh, rank);
}

base::Result<EngineOptions> options_from(const config::Options& keys,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank) {
  auto arrangement = arrangement_of(keys, model);
  layout::describe(mesh, arrangement);
  if (auto status = check(arrangement, layout::citation(arrangement)); !status.ok()) {
    return status.failure();
  }
  return checked_options(keys, model, mesh, rank);
}

}  // namespace trireme::engine
