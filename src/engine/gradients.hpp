// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/sharding/sharding.hpp"
#include "trireme/telemetry/spans.hpp"

#include "engine/totals/exact_sum.hpp"
#include "engine/weights/gradient_memory.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace trireme::engine {

/// Sums gradients over the ranks that share parameters: buckets over the data-parallel ranks as
/// soon as backward has completed them, a tied table's at the end; then what tensor-parallel ranks
/// or two stages share over those.
class GradientReducer {
 public:
  GradientReducer(const sharding::Sharding& sharding, const comm::AxisGroups& groups,
                  GradientMemory memory, device::Kernels& kernels, device::Arena& arena);

  void begin_step();
  /// Makes the device's next kernel find zeros where gradients of this part of the model add up,
  /// the first time in a step; where they all have memory of their own, begin_step() does.
  void prepare(const model::Place& place);
  /// Marks the gradients of this part of the model as final for this step: buckets that are
  /// complete now start their reduction.
  void completed(const model::Place& place);
  /// The same for those of a micro-batch, where these are reduced each and added up as shards.
  void completed_micro_batch(const model::Place& place);
  /// Progress without waiting.
  void poll();
  /// Makes the device's next kernel wait for all started reductions; the host need not wait.
  void wait_on_stream();
  /// Reduces a tied table, waits for all and adds what tensor-parallel ranks and stages share.
  void finish();
  /// Time since the last call that the computing thread spent on reductions, to start them, to make
  /// progress or to wait: on CPUs that is all of their work. For a device, which moves data by
  /// itself, the time that it waited, which computation did not hide.
  double take_exposed_seconds() { return exposed_->take(); }

  /// Time since the last call in which a bucket's reduction was under way; nothing where a device
  /// moves data.
  std::optional<double> take_busy_seconds();

  /// Adds the squares of reduced gradients, as far as this rank counts them: over all ranks each
  /// distinct element once. The host waits for the device.
  void add_squares(ExactSum& squares);

 private:
  struct UnderWay {
    std::size_t bucket;
    comm::Work work;
  };
  void start(std::size_t bucket);
  /// Behind a bucket's reduction: adds a micro-batch's sums to those before.
  void add_up(std::size_t bucket);
  /// Waits for reductions from these elements of the ring.
  void free(layout::FlatRange ring);
  /// Calls act(shard piece, sums of it that are held, their place in the exchange buffer) for what
  /// tensor-parallel ranks have terms of.
  template <typename Act>
  void each_partial(const Act& act) const;
  /// Notes that none is under way any more.
  void end_busy();
  void add_partial_terms();
  void add_tied_terms();

  const sharding::Sharding& sharding_;
  comm::AxisGroups groups_;
  device::Kernels& kernels_;
  const model::StageParameters& stage_;
  GradientMemory memory_;
  device::Tensor exchange_;              // f32: partial shard pieces, all parts of each
  std::vector<int> parameters_missing_;  // [bucket]
  std::vector<int> parameters_of_bucket_;
  /// Buckets of each part of the model, one for each fused parameter that lies in it.
  std::map<model::Place, std::vector<std::size_t>> buckets_of_place_;
  /// [unit]: whether gradients of this step, or micro-batch, have begun to add up in the ring.
  std::vector<bool> begun_;
  /// [bucket]: whether micro-batches have been added up.
  std::vector<bool> has_sums_;
  std::vector<UnderWay> under_way_;
  /// Begin of the first one under way.
  telemetry::SpanClock::time_point busy_since_;
  double busy_seconds_ = 0;
  std::unique_ptr<device::Stopwatch> exposed_;
  /// Null where a device moves data: the host's time does not count then.
  device::Stopwatch* hosts_part_ = nullptr;
};

}  // namespace trireme::engine
