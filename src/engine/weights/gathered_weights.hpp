// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/device.hpp"
#include "trireme/layers/weight_source.hpp"
#include "trireme/layout/chunk_buffers.hpp"
#include "trireme/optim/state.hpp"

#include "engine/graphs/graphs.hpp"
#include "units.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::engine {

/// Places whose weights a list of actions reads, in turn; each of several readings in a row counts
/// once. `chunks`: the places of each chunk in the order of forward. The head's backward is in
/// forward, the embedding's reads no weights.
std::vector<model::Place> reading_order(const std::vector<layout::Action>& actions,
                                        const std::vector<std::vector<model::Place>>& chunks,
                                        layout::Passes passes);

/// Weights of which each data-parallel rank holds its shards alone (ZeRO level 3). A unit is
/// gathered into its place when a pass reads it, unless it is still there, and the next one that
/// will be read while a pass computes, as far as its place is free.
class GatheredWeights final : public layers::WeightSource {
 public:
  /// Memory: the shards, those of bucket b at held[b], and the ring in which units take turns.
  struct Shards {
    optim::FlatValues values;
    std::vector<optim::Segment> held;
    device::Tensor ring;
  };
  GatheredWeights(const sharding::Sharding& sharding, const Units& units, comm::ProcessGroup& data,
                  Shards shards, Graphs& graphs, device::Device& device);
  /// Waits for what is under way, unless an error unwinds the stack.
  ~GatheredWeights() override;

  /// Called before a pass adds to gradients.
  void on_gradients(std::function<void(const model::Place&)> prepare) {
    prepare_ = std::move(prepare);
  }
  /// Says what will be read.
  void begin(std::vector<model::Place> order);
  /// Behind the last of it.
  void finish();
  /// Units in the ring are out of date from now on.
  void parameters_changed();
  /// Progress without waiting.
  void poll();
  /// Time since the last call that the device stood still for weights, or the host gathered them;
  /// a wait that a device has not reached yet is told later.
  double take_waited_seconds() { return waited_->take(); }
  /// Bytes of what was gathered since begin().
  std::size_t gathered_bytes() const { return gathered_bytes_; }

  /// Graph breaks, both: gathers begin and end whenever the part runs, in the order of all others.
  void acquire(const model::Place& place, layers::Pass pass) override;
  void release(const model::Place& place, layers::Pass pass) override;

 private:
  struct Held {
    bool is_there = false;
    std::vector<comm::Work> works;
    int leases = 0;
  };
  void lease(const model::Place& place);
  void gather(std::size_t unit);
  void await(Held& held);
  void gather_ahead();

  const sharding::Sharding& sharding_;
  const Units& units_;
  comm::ProcessGroup& data_;
  Shards shards_;
  Graphs& graphs_;
  std::vector<Held> held_;  // [unit]
  std::vector<model::Place> order_;
  /// Place of order_ that is being read.
  std::size_t now_ = 0;
  std::size_t gathered_bytes_ = 0;
  std::unique_ptr<device::Stopwatch> waited_;
  /// Empty where all gradients have memory of their own.
  std::function<void(const model::Place&)> prepare_;
};

}  // namespace trireme::engine
