// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/predict/workload.hpp"

#include "data_exchange.hpp"
#include "layer_operations.hpp"
#include "segment.hpp"
#include "weight_ring.hpp"

#include <vector>

/// Plans of a stage's actions, worked out once. Private to the room.
namespace trireme::predict {

/// A part of an action without a collective of data-parallel ranks within.
struct Piece {
  Segment work;
  /// Gather of parameters that the work waits for; zero for none. It begins with the piece before,
  /// whose parameters came with the one before that.
  Time gather{};
  /// The gather was issued at the end of the last step, in the order of forward.
  bool gather_from_start = false;
  /// Sum of gradients that begins behind the work.
  Time reduce{};
};

struct ChunkPlan {
  std::vector<Piece> first_forward;
  std::vector<Piece> forward;
  /// Whole, or the half that computes the input's gradient.
  std::vector<Piece> backward;
  std::vector<Piece> last_backward;
  /// The half that computes the weights' gradients, of schedules that split backward.
  std::vector<Piece> weight = {};
  std::vector<Piece> last_weight = {};
};

struct StagePlan {
  std::vector<ChunkPlan> chunks;
  StepEnd end;
  /// [action][piece], where units of weights take turns in a ring; else empty.
  std::vector<std::vector<PlaceTurn>> turns = {};
};

/// Lists of a step's actions, and the layers of the chunks that they are of: [stage][chunk].
struct StepLists {
  layout::Schedule schedule;
  std::vector<std::vector<layout::LayerRange>> layers;
};

/// The failure names the key of a schedule, or of an assignment of layers, that cannot be.
base::Result<StepLists> lists_of(const Workload& workload);

/// Plans of all stages.
std::vector<StagePlan> plan_stages(const Workload& workload, const LayerOperations& operations,
                                   const OperationCosts& costs, const DataExchange& data,
                                   const StepLists& lists, Time norm);

}  // namespace trireme::predict
