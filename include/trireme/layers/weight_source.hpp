// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/parameters.hpp"

#include <utility>

namespace trireme::layers {

/// Passes of a micro-batch through a part of the model, by what they need of its weights.
enum class Pass {
  forward,         ///< reads them
  backward_input,  ///< reads them, and adds to gradients of norms, or to all where it is not split
  backward_weight  ///< adds to gradients alone
};

/// Giver of weights to the parts of a model: the table, each layer, the head. They lie at fixed
/// addresses, those of model::StageParameters, so that views are made once and CUDA graphs hold
/// them; what lies there is a part's own while a WeightLease is.
class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  /// Makes the device's next kernel find what the pass needs. Where ranks share weights out among
  /// them it is collective over these, not joined: the host need not wait.
  virtual void acquire(const model::Place& place, Pass pass) = 0;
  /// Behind the last kernel of the pass.
  virtual void release(const model::Place& place, Pass pass) = 0;
};

/// Weights of a place that a pass may use until end(). The destructor gives nothing back: a lease
/// that was not ended is dropped by an error that unwinds, and a release would start collectives
/// that meet nobody, and may throw.
class [[nodiscard]] WeightLease {
 public:
  WeightLease(WeightSource* source, const model::Place& place, Pass pass)
      : source_(source), place_(place), pass_(pass) {
    if (source_ != nullptr) source_->acquire(place_, pass_);
  }
  WeightLease(const WeightLease&) = delete;
  WeightLease& operator=(const WeightLease&) = delete;
  ~WeightLease() = default;

  /// Behind the last kernel of the pass.
  void end() {
    if (auto* const source = std::exchange(source_, nullptr)) source->release(place_, pass_);
  }

 private:
  WeightSource* source_;
  model::Place place_;
  Pass pass_;
};

}  // namespace trireme::layers
