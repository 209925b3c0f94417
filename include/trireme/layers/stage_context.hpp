// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/recompute.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/layers/weight_copies.hpp"
#include "trireme/layers/weight_source.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <cstdint>
#include <functional>

namespace trireme::layers {

using config::Activation;
using config::ActivationSet;
using config::Recompute;

/// Type of operands that the GEMMs of layers' forward read. Everything else, and all of backward,
/// is in the compute type.
enum class LinearForward {
  plain,  ///< activations and weights as they are
  e4m3    ///< copies of both in FP8, one scale a tensor
};

/// Work that lies beside collectives of tensor-parallel ranks.
enum class TensorOverlap {
  plain,  ///< gradients of weights
  /// And forward of half a micro-batch's sequences, where there are several, beside collectives of
  /// the other half; not with FP8, which has one scale for a tensor. The largest gradient of a
  /// layer's weights is made in halves, too, so that some lies beside each collective of backward.
  /// Bits stay where a row's product does not depend on how many there are, nor a column's.
  halves
};

/// Values that all layers of a rank share: the shapes of a micro-batch, the devices that compute,
/// the ranks that share every matrix. Outlives the stage.
struct StageContext {
  const model::ModelConfig& config;
  device::Kernels& kernels;
  comm::ProcessGroup& tensor;
  /// Temporaries of one action.
  device::Arena& workspace;
  device::DType dtype = device::DType::f32;
  std::int64_t micro_batch = 1;
  /// Tokens of a sequence that the rank has.
  std::int64_t sequence_length = 1;
  model::SequenceParallel sequence_parallel = model::SequenceParallel::off;
  Recompute recompute{};
  /// Rows whose logits exist at once. Fewer make products small and add up the weight gradient
  /// more often; more cost memory.
  std::int64_t loss_rows = 1024;
  std::uint64_t seed = 0;
  LinearForward linear_forward = LinearForward::plain;
  TensorOverlap tensor_overlap = TensorOverlap::plain;
  /// With FP8: copies of all weights, up to date; null where each product makes its own.
  const KeptCopies* weight_copies = nullptr;
  /// Counts what the computing thread gives to collectives of activations; null on devices, whose
  /// streams wait for them.
  device::Stopwatch* tensor_watch = nullptr;
  /// Called between layers, so that messages and reductions under way make progress.
  std::function<void()> progress = [] {};
  /// Gives a stage's weights; null where they always lie there, up to date.
  WeightSource* weights = nullptr;
  /// Ranks that divide every sequence (layout::token_runs); null where each has whole ones.
  comm::ProcessGroup* context_parallel = nullptr;

  /// Tokens of a whole sequence.
  std::int64_t whole_length() const {
    return context_parallel == nullptr ? sequence_length
                                       : sequence_length * context_parallel->size();
  }
  /// Tokens of a micro-batch that the rank has.
  std::int64_t rows() const { return micro_batch * sequence_length; }
  /// Rows of what lies between the tensor-parallel parts of layers: with sequence parallelism
  /// each rank keeps a consecutive part of the micro-batch's rows.
  std::int64_t local_rows() const {
    return sequence_parallel == model::SequenceParallel::on ? rows() / tensor.size() : rows();
  }
  /// A new tensor like the residual stream: [local_rows, hidden].
  device::Tensor stream(device::Arena& arena) const {
    return arena.allocate(dtype, {local_rows(), config.hidden_size});
  }
  /// Row of the micro-batch that is this rank's first.
  std::int64_t first_local_row() const {
    return sequence_parallel == model::SequenceParallel::on ? tensor.rank() * local_rows() : 0;
  }
};

/// The tokens of one micro-batch, and what they are to become.
struct MicroBatch {
  device::Tensor tokens;   // i32 [rows]
  device::Tensor targets;  // i32 [rows]; negative: not counted
  /// Index of the first sequence among all that training ever draws: dropout's masks follow it.
  std::int64_t first_sequence = 0;
  /// f32 [1]: 1 / tokens of the global batch, by which gradients of losses are scaled; empty
  /// outside training.
  device::Tensor loss_scale{};
  /// Share of activations that training leaves out; 0 outside training.
  float dropout = 0.0F;
  /// i32 [4], or empty: two 64-bit numbers, the index of the first sequence and that of its first
  /// row, where kernels read them; first_sequence is 0 then.
  device::Tensor places{};
  /// i32 [rows], or empty: the first token of its sequence that each token attends to
  /// (device::Attention::first_keys).
  device::Tensor first_keys{};
};

}  // namespace trireme::layers
