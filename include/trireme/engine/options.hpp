// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"
#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/sharding/sharding.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::engine {

enum class Use { training, evaluation };

/// Memory for the logits of a whole micro-batch: reserved or not (loss and gradients need none).
enum class KeepLogits { no, yes };

/// Memory that masters and the optimizer's state lie in between updates.
enum class Home { device, host };

/// Capture of micro-batches, once, to launch them as CUDA graphs, where the device can.
enum class CudaGraphs { no, yes };

/// Whether documents that lie in one sequence attend to themselves alone.
enum class DocumentMask { no, yes };

/// Micro-batches of a step, and their way through the pipeline.
struct ScheduleOptions {
  layout::ScheduleKind kind = layout::ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  /// Layers of each position of the model; empty for a balanced assignment.
  std::vector<int> stage_layers;
  /// Sequences of a micro-batch, and micro-batches of one data-parallel rank in a step.
  std::int64_t micro_batch = 1;
  int micro_batches = 1;
  std::int64_t sequence_length = 1;
  DocumentMask document_mask = DocumentMask::no;
  layers::TensorOverlap tensor_overlap = layers::TensorOverlap::plain;

  /// Sequences of one data-parallel rank in a step.
  std::int64_t sequences() const { return micro_batches * micro_batch; }
};

/// Types, kernels and random numbers.
struct NumericsOptions {
  device::DType dtype = device::DType::f32;
  /// e4m3: with bf16 as the compute type.
  layers::LinearForward linear_forward = layers::LinearForward::plain;
  /// Largest global gradient norm; 0: gradients are not clipped.
  double clip_norm = 0.0;
  std::uint64_t seed = 0;
  /// Attention kernels of GPUs; nothing on CPUs.
  std::optional<device::AttentionChoice> gpu_attention;
};

/// Memory: what is kept in it, and what is made again or recorded instead.
struct MemoryOptions {
  KeepLogits keep_logits = KeepLogits::no;
  layers::Recompute recompute{};
  /// Copies of weights, with e4m3 alone.
  layers::WeightCopies weight_copies = layers::WeightCopies::for_each_use;
  /// Rows of a micro-batch whose logits exist at once.
  std::int64_t loss_rows = 1024;
  Home optimizer_home = Home::device;
  /// Most memory of a chunk of what comes from another home: three are on the device at once.
  std::int64_t chunk_bytes = std::int64_t{64} << 20;
  /// Training steps only; collectives are graph breaks (docs/decisions/0026).
  CudaGraphs cuda_graphs = CudaGraphs::no;
};

/// Settings that determine the computation and the memory of a rank.
struct EngineOptions {
  Use use = Use::training;
  model::ModelConfig model;
  sharding::Options sharding;
  ScheduleOptions schedule;
  NumericsOptions numerics;
  MemoryOptions memory;
};

/// Refuses options that do not fit together, with key, value and rule.
base::Status check(const EngineOptions& options);

/// Attention of one micro-batch on a rank of the mesh.
device::AttentionSize attention_of(const model::ModelConfig& model, const ScheduleOptions& schedule,
                                   device::DType dtype, const layout::Mesh& mesh);
/// The same with the mesh of a run.
device::AttentionSize attention_of(const EngineOptions& options);

/// Tokens of a sequence that each rank has: all, unless context-parallel ranks divide them.
std::int64_t rank_tokens(const ScheduleOptions& schedule, const layout::Mesh& mesh);

/// Work that should lie beside collectives: halves where a GPU moves their data beside its
/// products, and a half is worth the collective and the products that it starts more, because its
/// bytes take longer on the links. On CPUs the thread that computes moves data, and halves would
/// only make products smaller.
layers::TensorOverlap tensor_overlap_of(const EngineOptions& options);

/// Whether FP8 copies of weights lie beside them.
bool keeps_weight_copies(const EngineOptions& options);

/// Samples of a step, over all data-parallel ranks.
std::int64_t global_batch(const ScheduleOptions& schedule, const layout::Mesh& mesh);

/// Who holds what of the stage of options.sharding.rank. A pure function, also of the ranks of
/// others.
sharding::Sharding sharding_of(const EngineOptions& options);

}  // namespace trireme::engine
