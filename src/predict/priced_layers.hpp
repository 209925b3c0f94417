// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include "layer_operations.hpp"
#include "segment.hpp"
#include "stage_plan.hpp"
#include "step_sizes.hpp"

#include <algorithm>
#include <map>

/// Times of a model's parts, worked out once for many layouts. Private to the room.
namespace trireme::predict {

/// Parts of a model, for one micro-batch on a rank.
struct PartSegments {
  /// Calls of the host around an action.
  Segment begin;
  Segment layer;
  Segment embedding;
  Segment embedding_backward;
  Segment head;
  Segment head_backward;
  /// Least time of a message between two stages.
  Time message{};
};

class PricedLayers {
 public:
  PricedLayers(const Machine& machine, const Workload& workload)
      : workload_(workload),
        placement_(machine, workload.degrees.world_size()),
        links_(machine, placement_.node_size()),
        costs_(machine, workload.program.precision,
               core_use(machine, workload.degrees.world_size()).node_share),
        operations_(machine, workload_, placement_, costs_, links_) {
    const double bytes = message_bytes(workload, costs_);
    parts_ = {.begin = sum_of({operations_.begin()}),
              .layer = sum_of(operations_.forward()),
              .embedding = sum_of(operations_.embedding()),
              .embedding_backward = sum_of(operations_.embedding_backward()),
              .head = sum_of(operations_.head()),
              .head_backward = sum_of(operations_.head_backward()),
              .message = std::min(links_.message(bytes, false), links_.message(bytes, true))};
  }
  PricedLayers(const PricedLayers&) = delete;
  PricedLayers& operator=(const PricedLayers&) = delete;

  const PartSegments& parts() const { return parts_; }
  const OperationCosts& costs() const { return costs_; }
  const LayerOperations& operations() const { return operations_; }
  const Segment& backward(const config::ActivationSet& again) {
    unsigned bits = 0;
    for (std::size_t kind = 0; kind < config::activation_count; ++kind) {
      if (again.has(static_cast<config::Activation>(kind))) bits |= 1U << kind;
    }
    const auto [found, is_new] = backward_.try_emplace(bits);
    if (is_new) found->second = sum_of(operations_.backward(again, BackwardHalf::both));
    return found->second;
  }

 private:
  // Members refer to those before them.
  Workload workload_;
  Placement placement_;
  Links links_;
  OperationCosts costs_;
  LayerOperations operations_;
  PartSegments parts_;
  std::map<unsigned, Segment> backward_;
};

/// Exchange of gradients and parameters among the data-parallel ranks of a layout.
class PricedExchange {
 public:
  PricedExchange(const Machine& machine, const Workload& workload)
      : workload_(workload),
        placement_(machine, workload.degrees.world_size()),
        links_(machine, placement_.node_size()),
        data_(workload_, placement_, links_),
        norm_(norm_time(links_, placement_, workload.degrees.world_size())) {}
  PricedExchange(const PricedExchange&) = delete;
  PricedExchange& operator=(const PricedExchange&) = delete;

  const DataExchange& data() const { return data_; }
  Time norm() const { return norm_; }

 private:
  Workload workload_;
  Placement placement_;
  Links links_;
  DataExchange data_;
  Time norm_;
};

}  // namespace trireme::predict
