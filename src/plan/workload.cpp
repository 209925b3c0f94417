// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/engine.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/plan/time_plan.hpp"
#include "trireme/sharding/assignment.hpp"

#include <algorithm>

namespace trireme::plan {

using layout::Axis;

namespace {

/// Seconds of a short launch, as perf/results/gpu-prediction.md counts them, and of a call on
/// cores, which hands nothing to another device.
constexpr double launch_gap = 2.5e-6;
constexpr double call_gap = 2e-6;
/// Operations that the forward of a layer issues; a captured micro-batch is one launch.
constexpr int layer_launches = 14;

predict::Shape computed_shape(const model::ModelConfig& model, std::int64_t sequence_length) {
  return {.layers = model.num_hidden_layers,
          .hidden = model.hidden_size,
          .heads = model.num_attention_heads,
          .kv_heads = model.num_key_value_heads,
          .head_width = model.head_dim,
          .intermediate = model.intermediate_size,
          .gated_mlp = model.family().gated_mlp,
          .vocabulary = model.vocab_size,
          .tied_head = model.tie_word_embeddings,
          .sequence = sequence_length};
}

predict::Precision computed_precision(const engine::NumericsOptions& numerics) {
  if (numerics.linear_forward == layers::LinearForward::e4m3) return predict::Precision::fp8;
  return numerics.dtype == device::DType::bf16 ? predict::Precision::bf16
                                               : predict::Precision::fp32;
}

/// Bytes that the update of an element reads and writes: its gradient, its master and its moments
/// in fp32, and the parameter.
double element_update_bytes(const optim::Rule& rule, device::DType dtype) {
  constexpr double fp32 = 4;
  const auto states = optim::state_names(rule, optim::Content::elements).size();
  const bool has_master = dtype != device::DType::f32;
  const double parameter = has_master ? static_cast<double>(device::size_of(dtype)) : 0;
  return fp32 + 2 * fp32 * (1 + static_cast<double>(states)) + parameter;
}

/// FLOPs of a rank's updates of matrices.
struct MatrixWork {
  double products = 0;
  /// Mean over the updates of a turn.
  double decompositions = 0;

  double all() const { return products + decompositions; }
};

MatrixWork work_of(const model::CostOfMatrix& cost, const optim::Segment& segment) {
  const auto blocks = segment.blocks;
  const auto renewal = cost({segment.shape.rows / blocks, segment.shape.columns}).renewal;
  const double decompositions =
      static_cast<double>(blocks) * renewal.flops / static_cast<double>(renewal.every);
  const double all = model::cost_of(cost, segment.shape, blocks).flops;
  // Tensor-parallel ranks take turns in being owners.
  const auto ranks = static_cast<double>(std::max<std::size_t>(1, segment.parts.size()));
  return {(all - decompositions) / ranks, decompositions / ranks};
}

/// Matrices that the busiest data-parallel rank of the first stage updates.
MatrixWork matrix_work(const engine::EngineOptions& options) {
  const auto cost = sharding::cost_of_matrix(options.sharding.rule, options.numerics.dtype);
  if (!cost) return {};
  const auto sharding = engine::sharding_of(options);
  const auto alike = sharding.alike_shards();
  MatrixWork most;
  for (int rank = 0; rank < options.sharding.mesh.degree(layout::replica_axes); ++rank) {
    if (alike[static_cast<std::size_t>(rank)] != rank) continue;
    MatrixWork sum;
    for (const auto& segment : sharding.updates_of(rank).segments) {
      if (segment.content != optim::Content::matrix) continue;
      const auto work = work_of(cost, segment);
      sum.products += work.products;
      sum.decompositions += work.decompositions;
    }
    if (sum.all() > most.all()) most = sum;
  }
  return most;
}

predict::Program computed_program(const engine::EngineOptions& options,
                                  const predict::Machine& machine) {
  const bool on_gpus = !machine.node.computes_on_cores();
  const auto& sharding = options.sharding;
  const auto dtype = options.numerics.dtype;
  predict::Program program;
  program.precision = computed_precision(options.numerics);
  program.recompute = options.memory.recompute;
  program.sequence_parallel = sharding.sequence_parallel == model::SequenceParallel::on;
  // On CPUs the thread that computes gathers at once.
  program.overlaps_gathers = on_gpus;
  program.sharding = sharding.divides_parameters() ? predict::Sharding::parameters
                     : sharding.divides_updates()  ? predict::Sharding::optimizer
                                                   : predict::Sharding::none;
  program.bucket_elements = sharding.bucket_elements();
  program.update_bytes = element_update_bytes(sharding.rule, dtype);
  program.launch_gap = on_gpus ? launch_gap : call_gap;
  if (machine.node.launch_gap > 0) program.launch_gap = machine.node.launch_gap;
  program.launches = options.memory.cuda_graphs == engine::CudaGraphs::yes ? 1 : layer_launches;
  return program;
}

}  // namespace

predict::Workload workload_of(const engine::EngineOptions& options,
                              const predict::Machine& machine) {
  auto workload = workload_without_matrices(options, machine);
  const auto matrices = matrix_work(options);
  workload.program.update_flops = matrices.products;
  workload.program.decomposition_flops = matrices.decompositions;
  return workload;
}

predict::Workload workload_without_matrices(const engine::EngineOptions& options,
                                            const predict::Machine& machine) {
  const auto& mesh = options.sharding.mesh;
  const auto& schedule = options.schedule;
  predict::Workload workload;
  workload.shape = computed_shape(options.model, schedule.sequence_length);
  workload.degrees = {.tensor = mesh.degree(Axis::tensor),
                      .context = mesh.degree(Axis::context),
                      .data = mesh.degree(Axis::data),
                      .pipeline = mesh.degree(Axis::pipeline)};
  workload.micro_batches = {
      .schedule = schedule.kind,
      .virtual_stages = schedule.virtual_stages,
      .sequences = schedule.micro_batch,
      .count = schedule.micro_batches,
      .stage_layers =
          engine::stage_layers(options.model, schedule, mesh.degree(Axis::pipeline)).counts};
  workload.program = computed_program(options, machine);
  return workload;
}

}  // namespace trireme::plan
