// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/options.hpp"

#include "trireme/engine/stage_layers.hpp"
#include "trireme/ownership/price.hpp"

#include <algorithm>

namespace trireme::engine {

using layout::Axis;

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
          .context = mesh.degree(Axis::context)};
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
