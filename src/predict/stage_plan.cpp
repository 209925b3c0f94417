// SPDX-License-Identifier: Apache-2.0
#include "stage_plan.hpp"

#include <algorithm>
#include <map>

namespace trireme::predict {
namespace {

/// A chunk's parts in the order of forward: embedding, layers, head.
struct ChunkPart {
  Segment forward;
  /// Whole, or the input's half.
  Segment backward;
  Segment weight;
  double elements = 0;
};

class StagePlanner {
 public:
  StagePlanner(const Workload& workload, const LayerOperations& operations,
               const OperationCosts& costs, const DataExchange& data)
      : workload_(workload), operations_(operations), costs_(costs), data_(data) {
    const auto& micro = workload.micro_batches;
    placement_ = {workload.degrees.pipeline, micro.virtual_stages,
                  layout::placement_kind(micro.schedule)};
    splits_backward_ = layout::splits_backward(micro.schedule);
    layer_forward_ = sum_of(operations.forward());
    if (splits_backward_) layer_weight_ = sum_of(operations.backward_weight());
  }

  StagePlan plan(const std::vector<layout::LayerRange>& chunks, int stage, Time norm) {
    StagePlan plan;
    int first_layer = 0;
    double elements = 0;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const layout::ChunkPlace place{stage, static_cast<int>(chunk)};
      const auto parts = parts_of(chunks[chunk], first_layer, place);
      first_layer += chunks[chunk].end - chunks[chunk].begin;
      for (const auto& part : parts) elements += part.elements;
      plan.chunks.push_back(chunk_plan(parts));
    }
    plan.end = end_of_step(workload_, costs_, data_, elements, norm);
    return plan;
  }

 private:
  bool shards_parameters() const {
    return data_.exists() && workload_.program.sharding == Sharding::parameters;
  }

  const Segment& layer_backward(const config::ActivationSet& again) {
    // Sets of kinds are few.
    unsigned bits = 0;
    for (std::size_t kind = 0; kind < config::activation_count; ++kind) {
      if (again.has(static_cast<config::Activation>(kind))) bits |= 1U << kind;
    }
    const auto [found, is_new] = layer_backward_.try_emplace(bits);
    if (is_new) {
      const auto half = splits_backward_ ? BackwardHalf::input : BackwardHalf::both;
      found->second = sum_of(operations_.backward(again, half));
    }
    return found->second;
  }

  std::vector<ChunkPart> parts_of(const layout::LayerRange& layers, int first_layer,
                                  layout::ChunkPlace place) {
    const auto& shape = workload_.shape;
    const double tensor = workload_.degrees.tensor;
    const double table = static_cast<double>(shape.vocabulary * shape.hidden) / tensor;
    std::vector<ChunkPart> parts;
    if (placement_.is_first(place)) {
      parts.push_back(
          {sum_of(operations_.embedding()), sum_of(operations_.embedding_backward()), {}, table});
    }
    for (int layer = 0; layer < layers.end - layers.begin; ++layer) {
      const auto again = workload_.program.recompute.in_layer(first_layer + layer);
      parts.push_back({layer_forward_, layer_backward(again), layer_weight_,
                       shape.layer_parameters() / tensor});
    }
    if (placement_.is_last(place)) {
      // One table serves both ends of the model where they are on one stage.
      const bool shares_table =
          shape.tied_head && placement_.first_stage() == placement_.last_stage();
      ChunkPart head{sum_of(operations_.head()),
                     sum_of(operations_.head_backward()),
                     {},
                     shares_table ? 0 : table};
      if (workload_.program.head_backward_in_forward) {
        head.forward.append(head.backward);
        head.backward = {};
      }
      parts.push_back(head);
    }
    return parts;
  }

  ChunkPlan chunk_plan(const std::vector<ChunkPart>& parts) const {
    const auto& program = workload_.program;
    ChunkPlan plan;
    const bool reduces_always = shards_parameters() || program.sharding == Sharding::gradients;
    const bool reduces = program.overlaps_data || reduces_always;
    const bool gathers_updated =
        data_.exists() && program.overlaps_gathers &&
        (program.sharding == Sharding::optimizer || program.sharding == Sharding::gradients);
    plan.forward = forward_pieces(parts, shards_parameters());
    plan.first_forward = plan.forward;
    if (gathers_updated) {
      plan.first_forward = forward_pieces(parts, true);
      for (auto& piece : plan.first_forward) piece.gather_from_start = true;
    }
    if (splits_backward_) {
      plan.backward = backward_pieces(parts, BackwardHalf::input, false);
      plan.last_backward = plan.backward;
      plan.weight = backward_pieces(parts, BackwardHalf::weight, reduces_always);
      plan.last_weight = backward_pieces(parts, BackwardHalf::weight, reduces);
    } else {
      plan.backward = backward_pieces(parts, BackwardHalf::both, reduces_always);
      plan.last_backward = backward_pieces(parts, BackwardHalf::both, reduces);
    }
    return plan;
  }

  /// The first work of an action, behind the host's calls.
  Segment started(const Segment& work) const {
    auto segment = sum_of({operations_.begin()});
    segment.append(work);
    return segment;
  }

  std::vector<Piece> forward_pieces(const std::vector<ChunkPart>& parts, bool gathers) const {
    std::vector<Piece> pieces;
    for (const auto& part : parts) {
      if (!gathers && !pieces.empty()) {
        pieces.back().work.append(part.forward);
        continue;
      }
      pieces.push_back({.work = pieces.empty() ? started(part.forward) : part.forward});
      if (gathers) pieces.back().gather = data_.gather(part.elements);
    }
    return pieces;
  }

  std::vector<Piece> backward_pieces(const std::vector<ChunkPart>& parts, BackwardHalf half,
                                     bool reduces) const {
    const double bucket =
        shards_parameters() ? 0 : static_cast<double>(workload_.program.bucket_elements);
    // The weights' gradients come from rows alone.
    const bool gathers = shards_parameters() && half != BackwardHalf::weight;
    std::vector<Piece> pieces;
    double waiting = 0;
    bool is_open = false;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const auto& work = half == BackwardHalf::weight ? part->weight : part->backward;
      if (is_open && !gathers) {
        pieces.back().work.append(work);
      } else {
        pieces.push_back({.work = pieces.empty() ? started(work) : work});
        if (gathers) pieces.back().gather = data_.gather(part->elements);
      }
      is_open = true;
      waiting += part->elements;
      if (!reduces || !data_.exists() || (waiting < bucket && std::next(part) != parts.rend())) {
        continue;
      }
      pieces.back().reduce = data_.reduce(waiting);
      waiting = 0;
      is_open = false;
    }
    return pieces;
  }

  const Workload& workload_;
  const LayerOperations& operations_;
  const OperationCosts& costs_;
  const DataExchange& data_;
  layout::Placement placement_;
  bool splits_backward_ = false;
  Segment layer_forward_;
  Segment layer_weight_;
  std::map<unsigned, Segment> layer_backward_;
};

}  // namespace

DataExchange::DataExchange(const Workload& workload, const Placement& placement, const Links& links)
    : workload_(workload),
      links_(links),
      place_(placement.group(workload.degrees.data * workload.degrees.context,
                             workload.degrees.tensor)) {}

CollectiveKind DataExchange::reduction() const {
  return workload_.program.sharding == Sharding::none ? CollectiveKind::all_reduce
                                                      : CollectiveKind::reduce_scatter;
}

double DataExchange::reduced_bytes(double elements) const {
  return elements * workload_.program.gradient_bytes;
}

double DataExchange::gathered_bytes(double elements) const {
  return elements * (workload_.program.precision == Precision::fp32 ? 4 : 2);
}

Time DataExchange::reduce(double elements) const {
  return links_.collective(reduction(), reduced_bytes(elements), place_);
}

Time DataExchange::gather(double elements) const {
  return links_.collective(CollectiveKind::all_gather, gathered_bytes(elements), place_);
}

Time DataExchange::least_reduce(double elements) const {
  return links_.least_of_all(reduction(), reduced_bytes(elements), place_);
}

Time DataExchange::least_gather(double elements) const {
  return links_.least_of_all(CollectiveKind::all_gather, gathered_bytes(elements), place_);
}

StepEnd end_of_step(const Workload& workload, const OperationCosts& costs, const DataExchange& data,
                    double elements, Time norm) {
  const auto& program = workload.program;
  const bool divided = data.exists() && program.sharding != Sharding::none;
  const bool sums_here =
      data.exists() && !program.overlaps_data &&
      (program.sharding == Sharding::none || program.sharding == Sharding::optimizer);
  StepEnd end{.norm = norm};
  if (sums_here) end.reduce = data.reduce(elements);
  const double own = divided ? elements / data.size() : elements;
  end.update = costs.pass(own * program.update_bytes);
  if (program.update_flops > 0) end.update += costs.flops(program.update_flops);
  if (program.decomposition_flops > 0) {
    end.update += costs.decomposition(program.decomposition_flops);
  }
  if (divided && !program.overlaps_gathers && program.sharding != Sharding::parameters) {
    end.gather = data.gather(elements);
  }
  return end;
}

std::vector<StagePlan> plan_stages(const Workload& workload, const LayerOperations& operations,
                                   const OperationCosts& costs, const DataExchange& data,
                                   const std::vector<std::vector<layout::LayerRange>>& layers,
                                   Time norm) {
  StagePlanner planner(workload, operations, costs, data);
  std::vector<StagePlan> plans;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    plans.push_back(planner.plan(layers[stage], static_cast<int>(stage), norm));
  }
  return plans;
}

}  // namespace trireme::predict
