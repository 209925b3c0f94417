// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/options.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/model/positions.hpp"
#include "trireme/ownership/price.hpp"
#include "trireme/sharding/assignment.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using layout::Axis;

namespace {

layout::ParallelArrangement arrangement_of(const EngineOptions& options) {
  layout::ParallelArrangement arrangement{
      .sequence = options.sharding.sequence_parallel == model::SequenceParallel::on,
      .schedule = options.schedule.kind,
      .virtual_stages = options.schedule.virtual_stages,
      .stage_layers = std::vector<std::int64_t>(options.schedule.stage_layers.begin(),
                                                options.schedule.stage_layers.end()),
      .micro_batch = options.schedule.micro_batch,
      .sequence_length = options.schedule.sequence_length,
      .micro_batches = options.schedule.micro_batches};
  layout::describe(options.sharding.mesh, arrangement);
  model::describe(options.model, arrangement);
  return arrangement;
}

/// Rule for widths of the model's matrices on each of `tensor` ranks, multiplied in FP8. GPUs
/// multiply codes 16 at a time along both dimensions of a weight; the rule is the same on CPUs, so
/// that a run may move to a GPU.
base::Status check_fp8(const model::ModelConfig& model, std::int64_t tensor) {
  constexpr std::int64_t together = 16;
  const auto kv_heads = std::max<std::int64_t>(1, model.num_key_value_heads / tensor);
  const auto heads = model.num_attention_heads / tensor;
  const std::pair<const char*, std::int64_t> widths[] = {
      {"model.hidden_size", model.hidden_size},
      {"model.intermediate_size / parallel.tensor", model.intermediate_size / tensor},
      {"model.num_attention_heads / parallel.tensor x model.head_dim", heads * model.head_dim},
      {"the width of a rank's queries, keys and values", (heads + 2 * kv_heads) * model.head_dim}};
  for (const auto& [what, width] : widths) {
    if (width % together == 0) continue;
    return base::usage_failure(base::format(
        "numerics.precision = fp8 but {} = {} is not a multiple of {} (FP8 products take so many "
        "numbers at a time); use {} or precision bf16",
        what, width, together, (width / together + 1) * together));
  }
  return {};
}

/// Rule for gradients that are reduced behind each micro-batch.
base::Status check_schedule(const EngineOptions& options) {
  const auto& schedule = options.schedule;
  const bool is_split =
      layout::splits_backward(schedule.kind) &&
      (options.sharding.mesh.degree(Axis::pipeline) > 1 || schedule.virtual_stages > 1);
  if (!options.sharding.reduces_micro_batches() || !is_split) return {};
  return base::usage_failure(base::format(
      "parallel.zero_level = 2 does not go with parallel.schedule = {} (gradients of one "
      "micro-batch would begin before those of another end); use schedule 1f1b or interleaved, or "
      "parallel.zero_level=1",
      layout::name(schedule.kind)));
}

/// Rule for state whose home is host memory.
base::Status check_home(const EngineOptions& options) {
  const auto& rule = optim::traits(options.sharding.rule.kind);
  if (options.memory.optimizer_home == Home::device || !rule.updates_matrices) return {};
  return base::usage_failure(base::format(
      "offload.optimizer = host does not go with optimizer.name = {} (chunks of state are no whole "
      "matrices); use optimizer.name adamw or sgd, or offload.optimizer=none",
      rule.name));
}

}  // namespace

base::Status check(const EngineOptions& options) {
  if (auto status = model::check(options.model); !status.ok()) return status;
  if (auto status = layout::check(arrangement_of(options)); !status.ok()) return status;
  if (auto status = model::check_positions(
          options.model,
          base::format("train.sequence_length = {}", options.schedule.sequence_length),
          options.schedule.sequence_length);
      !status.ok()) {
    return status;
  }
  if (auto status = check_schedule(options); !status.ok()) return status;
  if (auto status = check_home(options); !status.ok()) return status;
  const auto& numerics = options.numerics;
  const int tensor = options.sharding.mesh.degree(Axis::tensor);
  if (numerics.linear_forward == layers::LinearForward::e4m3) {
    if (auto status = check_fp8(options.model, tensor); !status.ok()) return status;
  }
  if (numerics.gpu_attention) {
    const auto status = device::check_attention(attention_of(options), *numerics.gpu_attention);
    if (!status.ok()) return status;
  }
  return sharding::check(options.sharding, options.model, numerics.gpu_attention.has_value());
}

device::AttentionSize attention_of(const model::ModelConfig& model, const ScheduleOptions& schedule,
                                   device::DType dtype, const layout::Mesh& mesh) {
  const int tensor = mesh.degree(Axis::tensor);
  return {.dtype = dtype,
          .batch = schedule.micro_batch,
          .seq = schedule.sequence_length,
          .heads = model.num_attention_heads / tensor,
          .kv_heads = std::max<std::int64_t>(1, model.num_key_value_heads / tensor),
          .head_dim = model.head_dim,
          .dropout = model.dropout > 0.0,
          .context = mesh.degree(Axis::context),
          .documents = schedule.document_mask == DocumentMask::yes};
}

device::AttentionSize attention_of(const EngineOptions& options) {
  return attention_of(options.model, options.schedule, options.numerics.dtype,
                      options.sharding.mesh);
}

std::int64_t rank_tokens(const ScheduleOptions& schedule, const layout::Mesh& mesh) {
  return schedule.sequence_length / mesh.degree(Axis::context);
}

layers::TensorOverlap tensor_overlap_of(const EngineOptions& options) {
  using layers::TensorOverlap;
  const auto& schedule = options.schedule;
  const int tensor = options.sharding.mesh.degree(Axis::tensor);
  const bool on_gpus = options.numerics.gpu_attention.has_value();
  if (!on_gpus || tensor == 1) return TensorOverlap::plain;
  const ownership::MachineSpeeds machine;
  // Context-parallel ranks cut no forward, but backward's products: their price is less than this.
  const auto rows = schedule.micro_batch * rank_tokens(schedule, options.sharding.mesh);
  const auto elements = static_cast<double>(rows * options.model.hidden_size / 2);
  const double bytes = elements * static_cast<double>(device::size_of(options.numerics.dtype));
  constexpr int products_beside = 3;
  const double more = machine.collective_seconds + products_beside * machine.launch_seconds;
  return bytes / machine.node_bytes > more ? TensorOverlap::halves : TensorOverlap::plain;
}

bool keeps_weight_copies(const EngineOptions& options) {
  return options.numerics.linear_forward == layers::LinearForward::e4m3 &&
         options.memory.weight_copies == layers::WeightCopies::kept;
}

std::int64_t global_batch(const ScheduleOptions& schedule, const layout::Mesh& mesh) {
  return schedule.sequences() * mesh.degree(Axis::data);
}

sharding::Sharding sharding_of(const EngineOptions& options) {
  const auto& schedule = options.schedule;
  return {options.model, options.sharding,
          chunk_layers(options.model, schedule, options.sharding.mesh.degree(Axis::pipeline)),
          layout::placement_kind(schedule.kind), options.numerics.dtype};
}

}  // namespace trireme::engine
