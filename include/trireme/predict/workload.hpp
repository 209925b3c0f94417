// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/recompute.hpp"
#include "trireme/layout/schedule.hpp"

#include <cstdint>
#include <vector>

/// A training step as it is to be predicted, whoever's program runs it.
namespace trireme::predict {

/// Sizes of a transformer and of its sequences.
struct Shape {
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t intermediate = 0;
  /// Matrices of an MLP with a gate: three.
  bool gated_mlp = false;
  std::int64_t vocabulary = 0;
  /// The head's matrix is the embedding's.
  bool tied_head = false;
  std::int64_t sequence = 0;

  std::int64_t query_width() const { return heads * head_width; }
  std::int64_t kv_width() const { return kv_heads * head_width; }
  /// Elements of a layer's matrices.
  double layer_parameters() const;
};

/// Ranks in the order of the mesh: tensor-parallel neighbours first, then context, data, pipeline.
struct Degrees {
  int tensor = 1;
  int context = 1;
  int data = 1;
  int pipeline = 1;

  int world_size() const { return tensor * context * data * pipeline; }
};

struct MicroBatches {
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  /// Sequences of one, and how many a data-parallel rank has in a step.
  std::int64_t sequences = 1;
  int count = 1;
  /// Layers of each position of the model; empty for an even assignment.
  std::vector<int> stage_layers;
};

enum class Precision { fp32, bf16, fp8 };
/// Who keeps what among data-parallel ranks: ZeRO's levels.
enum class Sharding { none, optimizer, gradients, parameters };

/// Computation of a program beside collectives of tensor-parallel ranks.
enum class TensorOverlap {
  none,     ///< nothing
  weights,  ///< in backward gradients of weights
  pieces    ///< products that need them, or that they need: both go on in pieces
};

/// Habits of a program: its types, and which work it does beside other work. The defaults are
/// Trireme's on GPUs.
struct Program {
  Precision precision = Precision::bf16;
  /// fp8 in backward's products, too.
  bool fp8_backward = false;
  config::Recompute recompute{};
  /// A layer that is computed again is so with its last product.
  bool recomputes_last_product = false;
  /// Rows between a layer's split products are divided among tensor-parallel ranks.
  bool sequence_parallel = false;
  /// Backward gathers the rows of a product's input again, for the gradient of its weights.
  bool gathers_rows_again = true;
  /// Scores of attention are never in memory.
  bool fused_attention = true;
  /// Norms, activations and sums of a layer's residual stream read and write each tensor once.
  bool fused_passes = true;
  TensorOverlap tensor_overlap = TensorOverlap::weights;
  /// Sends go on beside the next action.
  bool overlaps_messages = true;
  /// Gradients are summed by bucket beside backward.
  bool overlaps_data = true;
  /// Updated parameters are gathered beside the next forward.
  bool overlaps_gathers = true;
  /// The head's backward follows its forward at once.
  bool head_backward_in_forward = true;
  Sharding sharding = Sharding::none;
  /// Where parameters are divided, tables and layers are gathered into a ring, one ahead, and
  /// gradients summed behind the last micro-batch; with one stage each takes all micro-batches
  /// before the next. Else every pass gathers, and sums, by itself.
  bool gathers_into_ring = true;
  int gradient_bytes = 4;
  /// Gradient elements of a bucket.
  std::int64_t bucket_elements = std::int64_t{25} << 18;
  /// Bytes that the update of one element reads and writes, and that the loss does for one logit.
  double update_bytes = 30;
  double loss_bytes = 8;
  /// FLOPs of a rank's updates of whole matrices: of products, and of decompositions, which are in
  /// fp32.
  double update_flops = 0;
  double decomposition_flops = 0;
  /// Seconds in which the host issues one operation.
  double launch_gap = 2.5e-6;
  /// A layer's forward is issued in so many pieces, its backward in twice as many.
  int launches = 22;
  /// Calls of the host around each action: for messages, batches, bookkeeping.
  int action_launches = 4;
};

struct Workload {
  Shape shape;
  Degrees degrees;
  MicroBatches micro_batches;
  Program program;
};

}  // namespace trireme::predict
