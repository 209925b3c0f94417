// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/time.hpp"
#include "trireme/predict/workload.hpp"

#include "collective.hpp"
#include "operation_costs.hpp"

/// Exchange of gradients and parameters among data-parallel ranks. Private to the room.
namespace trireme::predict {

/// End of a step, behind a stage's last action.
struct StepEnd {
  /// Sum of gradients that nothing goes on beside, the norm of all ranks' gradients, the update,
  /// and a gather that is waited for at once.
  Time reduce{};
  Time norm{};
  Time update{};
  Time gather{};
};

/// Sizes of what data-parallel ranks exchange, and the times of it.
class DataExchange {
 public:
  DataExchange(const Workload& workload, const Placement& placement, const Links& links);

  bool exists() const { return place_.size > 1; }
  Time reduce(double elements) const;
  Time gather(double elements) const;
  /// The same, no collective larger than a bucket.
  Time reduce_in_buckets(double elements) const;
  Time gather_in_buckets(double elements) const;
  /// Times that reductions or gathers of all these elements take at least, however many they are.
  Time least_reduce(double elements) const;
  Time least_gather(double elements) const;
  int size() const { return place_.size; }

 private:
  CollectiveKind reduction() const;
  double buckets(double elements) const;
  double reduced_bytes(double elements) const;
  double gathered_bytes(double elements) const;

  const Workload& workload_;
  const Links& links_;
  GroupPlace place_;
};

/// End of a step on a rank that has so many elements.
StepEnd end_of_step(const Workload& workload, const OperationCosts& costs, const DataExchange& data,
                    double elements, Time norm);

}  // namespace trireme::predict
