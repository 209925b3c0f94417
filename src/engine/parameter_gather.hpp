// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/layers/weight_source.hpp"
#include "trireme/sharding/sharding.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace trireme::engine {

/// Gathers of parameters that other data-parallel ranks have updated (ZeRO level 1): by bucket, in
/// the order in which forward first reads them. Where the device moves data by itself they go on
/// while forward computes, which waits before each layer for the buckets that hold its parameters.
/// Where the host's thread moves it nothing is won by that, and a part of the work would fall
/// between two steps, where no step's time counts it: they are waited for at once.
class ParameterGather {
 public:
  ParameterGather(const sharding::Sharding& sharding, comm::ProcessGroup& data,
                  device::Device& device);
  ParameterGather(const ParameterGather&) = delete;
  ParameterGather& operator=(const ParameterGather&) = delete;
  /// Waits for what is under way, unless an error unwinds the stack.
  ~ParameterGather();

  /// Collective over the data-parallel ranks, whose gathers before have been waited for. flat: all
  /// parameters of the rank, of which it has updated its shards.
  void start(const device::Tensor& flat);
  /// Progress without waiting.
  void poll();
  /// Whether forward has to wait here: some bucket's first parameters are those of this place.
  bool waits_at(const model::Place& place) const;
  /// Makes the device's next kernel wait for the parameters of this place, and of all places that
  /// forward comes to before it.
  void wait_for(const model::Place& place);
  /// The same for all parameters.
  void finish();

  /// Time since the last call that the device stood still for gathers in wait_for() and finish(); a
  /// wait that it has not reached yet is told later. Nothing where the host waits at once.
  std::optional<double> take_waited_seconds();

 private:
  /// A bucket, and where forward first reads it: positions ascend with the order of forward.
  struct Turn {
    int position;
    std::size_t bucket;
  };
  int position_of(const model::Place& place) const;
  void wait_up_to(int position);

  comm::ProcessGroup& data_;
  const sharding::Sharding& sharding_;
  bool is_first_stage_;
  std::vector<Turn> turns_;  // in the order of starts
  std::vector<comm::Work> works_;
  /// The first of works_ that has not been waited for.
  std::size_t next_ = 0;
  std::unique_ptr<device::Stopwatch> waited_;
};

/// Weights that each rank has whole: forward waits for those that other ranks have updated, and
/// whoever wants to hears of gradients.
class ResidentWeights final : public layers::WeightSource {
 public:
  using Told = std::function<void(const model::Place&)>;
  explicit ResidentWeights(Told wait_for) : wait_for_(std::move(wait_for)) {}

  /// `begins` is called before a pass adds to gradients, `ends` behind it.
  void on_gradients(Told begins, Told ends) {
    begins_ = std::move(begins);
    ends_ = std::move(ends);
  }
  void acquire(const model::Place& place, layers::Pass pass) override;
  void release(const model::Place& place, layers::Pass pass) override;

 private:
  Told wait_for_;
  Told begins_;
  Told ends_;
};

}  // namespace trireme::engine
