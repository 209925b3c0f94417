// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include "element_updates.hpp"
#include "micro_groups.hpp"
#include "part_exchange.hpp"
#include "shared_updates.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::optim {

/// Updates of whole matrices, in groups that their owners have at a time, and of those that several
/// ranks share.
class MatrixUpdates {
 public:
  /// `state`, which has a rule for matrices, and the groups of `peers` outlive it.
  MatrixUpdates(const Rule& rule, const OptimizerState& state, const Peers& peers);

  /// Updates elements too: while the first parts are under way, where any are exchanged.
  void update(const UpdateStep& step, const ElementUpdates& elements);
  /// States are read again that the host had read.
  void state_changed() { update_counts_.clear(); }
  ExchangeTimes take_exchange_times();

 private:
  /// The part of a matrix that this rank holds: first what the rule prepares, then its direction.
  struct Part {
    const Segment* segment;
    device::Tensor values;  // f32, flat
  };
  /// A group with its memory. Groups that are under way at the same time have other parts.
  struct GroupMemory {
    std::vector<Part> parts;
    device::Tensor whole;  // f32, flat: matrices that are owned here
    MicroGroup exchanged;
  };

  void read_update_counts(const UpdateStep& step);
  std::vector<Part> prepare_shared(const UpdateStep& step, std::vector<SharedUpdate>& shared) const;
  std::vector<GroupMemory> allocate_groups(device::Arena& workspace) const;
  void prepare(const UpdateStep& step, const std::vector<Part>& parts) const;
  void compute(const UpdateStep& step, const MatrixGroup& group, const device::Tensor& whole);
  void apply(const UpdateStep& step, const std::vector<Part>& parts) const;
  void update_exchanged(const UpdateStep& step, const ElementUpdates& elements,
                        PartExchange& exchange);

  const OptimizerState& state_;
  const MatrixRule& rule_;
  float weight_decay_;
  std::int64_t root_every_;
  Peers peers_;
  std::optional<PartExchange> exchange_;
  int ranks_ = 1;  // that exchange parts
  std::vector<MatrixGroup> groups_;
  /// [segment]: updates that its state at owners has had. Empty: not known before the next update.
  std::vector<std::int64_t> update_counts_;
};

}  // namespace trireme::optim
