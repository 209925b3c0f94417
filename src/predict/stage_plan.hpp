// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include "layer_operations.hpp"
#include "segment.hpp"

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

/// End of a step, behind a stage's last action.
struct StepEnd {
  /// Sum of gradients that nothing goes on beside, the norm of all ranks' gradients, the update,
  /// and a gather that is waited for at once.
  Time reduce{};
  Time norm{};
  Time update{};
  Time gather{};
};

struct StagePlan {
  std::vector<ChunkPlan> chunks;
  StepEnd end;
};

/// Sizes of what data-parallel ranks exchange, and the times of it.
class DataExchange {
 public:
  DataExchange(const Workload& workload, const Placement& placement, const Links& links);

  bool exists() const { return place_.size > 1; }
  Time reduce(double elements) const;
  Time gather(double elements) const;
  /// Times that reductions or gathers of all these elements take at least, however many they are.
  Time least_reduce(double elements) const;
  Time least_gather(double elements) const;
  int size() const { return place_.size; }

 private:
  CollectiveKind reduction() const;
  double reduced_bytes(double elements) const;
  double gathered_bytes(double elements) const;

  const Workload& workload_;
  const Links& links_;
  GroupPlace place_;
};

/// End of a step on a rank that has so many elements.
StepEnd end_of_step(const Workload& workload, const OperationCosts& costs, const DataExchange& data,
                    double elements, Time norm);

/// Plans of all stages; layers[stage][virtual stage].
std::vector<StagePlan> plan_stages(const Workload& workload, const LayerOperations& operations,
                                   const OperationCosts& costs, const DataExchange& data,
                                   const std::vector<std::vector<layout::LayerRange>>& layers,
                                   Time norm);

}  // namespace trireme::predict
