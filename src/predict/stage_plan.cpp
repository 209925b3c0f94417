// SPDX-License-Identifier: Apache-2.0
#include "stage_plan.hpp"

#include "trireme/layout/unit_chunks.hpp"

#include "step_sizes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace trireme::predict {
namespace {

/// A chunk's parts in the order of forward: embedding, layers, head.
struct ChunkPart {
  Segment forward;
  /// Whole, or the input's half.
  Segment backward;
  Segment weight;
  double elements = 0;
  enum class Kind { table, layer, head };
  Kind kind = Kind::layer;
};

class StagePlanner {
 public:
  StagePlanner(const Workload& workload, const LayerOperations& operations,
               const OperationCosts& costs, const DataExchange& data,
               const layout::Schedule& schedule)
      : workload_(workload),
        operations_(operations),
        costs_(costs),
        data_(data),
        schedule_(schedule),
        placement_(schedule.placement()),
        has_ring_(has_ring(workload)),
        splits_backward_(layout::splits_backward(schedule.kind)) {
    layer_forward_ = sum_of(operations.forward());
    if (splits_backward_) layer_weight_ = sum_of(operations.backward_weight());
  }

  StagePlan plan(const std::vector<layout::LayerRange>& chunks, int stage, Time norm) {
    StagePlan plan;
    int first_layer = 0;
    double elements = 0;
    std::vector<RingPlace> places;
    std::vector<std::vector<PlaceReading>> readings;
    const int layers = std::accumulate(
        chunks.begin(), chunks.end(), 0,
        [](int sum, const layout::LayerRange& each) { return sum + each.end - each.begin; });
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const layout::ChunkPlace place{stage, static_cast<int>(chunk)};
      const auto parts = parts_of(chunks[chunk], first_layer, place);
      first_layer += chunks[chunk].end - chunks[chunk].begin;
      for (const auto& part : parts) elements += part.elements;
      plan.chunks.push_back(chunk_plan(parts));
      if (has_ring_) readings.push_back(readings_of(parts, layers, places));
    }
    if (has_ring_) {
      plan.turns =
          place_turns(schedule_.actions[static_cast<std::size_t>(stage)], places, readings);
    }
    plan.end = end_of_step(workload_, costs_, data_, elements, norm);
    return plan;
  }

 private:
  /// Parameters that are divided are gathered, and gradients summed, in each pass.
  bool gathers_each_pass() const {
    return data_.exists() && workload_.program.sharding == Sharding::parameters && !has_ring_;
  }

  /// Layers take turns in two parts of the ring, the last one in the first (engine::Units). Table
  /// and head lie over both where a unit takes all micro-batches before the next, else behind them.
  /// A head that reads the stage's table has none of its own.
  std::vector<PlaceReading> readings_of(const std::vector<ChunkPart>& parts, int layers,
                                        std::vector<RingPlace>& places) const {
    const double layer = workload_.shape.layer_parameters() / workload_.degrees.tensor;
    const double vocabulary_begin =
        is_breadth_first(workload_) && !shares_table() ? 0 : std::min(layers, 2) * layer;
    int layers_before = 0;
    for (const auto& place : places) layers_before += place.is_layer ? 1 : 0;
    std::vector<PlaceReading> readings;
    for (const auto& part : parts) {
      const bool is_layer = part.kind == ChunkPart::Kind::layer;
      if (part.kind == ChunkPart::Kind::head && part.elements == 0) {
        readings.push_back({0, false});
        continue;
      }
      readings.push_back({places.size(), is_layer});
      if (is_layer) {
        const double begin = (layers - 1 - layers_before++) % 2 == 0 ? 0 : layer;
        places.push_back(
            {{{begin, begin + layer, data_.gather_in_buckets(part.elements)}}, is_layer});
      } else {
        places.push_back({vocabulary_blocks(part.elements, vocabulary_begin), is_layer});
      }
    }
    return readings;
  }

  bool shares_table() const {
    return workload_.shape.tied_head && placement_.first_stage() == placement_.last_stage();
  }

  /// Buckets of a table, each gathered by itself; one that two stages share is one.
  std::vector<RingUnit> vocabulary_blocks(double elements, double begin) const {
    const auto block = static_cast<double>(workload_.program.bucket_elements);
    const bool is_cut = shares_table() || !workload_.shape.tied_head;
    std::vector<RingUnit> units;
    double rest = elements;
    for (; is_cut && rest >= 2 * block; rest -= block) {
      units.push_back({begin, begin + block, data_.gather(block)});
      begin += block;
    }
    units.push_back({begin, begin + rest, data_.gather(rest)});
    return units;
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
      parts.push_back({sum_of(operations_.embedding()),
                       sum_of(operations_.embedding_backward()),
                       {},
                       table,
                       ChunkPart::Kind::table});
    }
    for (int layer = 0; layer < layers.end - layers.begin; ++layer) {
      const auto again = workload_.program.recompute.in_layer(first_layer + layer);
      parts.push_back({layer_forward_, layer_backward(again), layer_weight_,
                       shape.layer_parameters() / tensor});
    }
    if (placement_.is_last(place)) {
      // One table serves both ends of the model where they are on one stage.
      ChunkPart head{sum_of(operations_.head()),
                     sum_of(operations_.head_backward()),
                     {},
                     shares_table() ? 0 : table,
                     ChunkPart::Kind::head};
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
    const bool reduces_always = gathers_each_pass() || program.sharding == Sharding::gradients;
    const bool reduces = program.overlaps_data || reduces_always || has_ring_;
    const bool gathers_updated =
        data_.exists() && program.overlaps_gathers &&
        (program.sharding == Sharding::optimizer || program.sharding == Sharding::gradients);
    plan.forward = forward_pieces(parts, gathers_each_pass());
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
      if (!gathers && !has_ring_ && !pieces.empty()) {
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
    // Units are summed by themselves.
    const bool is_divided = gathers_each_pass() || has_ring_;
    const double bucket = is_divided ? 0 : static_cast<double>(workload_.program.bucket_elements);
    // The weights' gradients come from rows alone.
    const bool gathers = gathers_each_pass() && half != BackwardHalf::weight;
    std::vector<Piece> pieces;
    double waiting = 0;
    bool is_open = false;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const auto& work = half == BackwardHalf::weight ? part->weight : part->backward;
      if (is_open && !gathers && !has_ring_) {
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
      pieces.back().reduce = has_ring_ ? data_.reduce_in_buckets(waiting) : data_.reduce(waiting);
      waiting = 0;
      is_open = false;
    }
    return pieces;
  }

  const Workload& workload_;
  const LayerOperations& operations_;
  const OperationCosts& costs_;
  const DataExchange& data_;
  const layout::Schedule& schedule_;
  layout::Placement placement_;
  bool has_ring_;
  bool splits_backward_;
  Segment layer_forward_;
  Segment layer_weight_;
  std::map<unsigned, Segment> layer_backward_;
};

}  // namespace

base::Result<StepLists> lists_of(const Workload& workload) {
  const auto& micro = workload.micro_batches;
  auto schedule = layout::make_schedule(micro.schedule, workload.degrees.pipeline, micro.count,
                                        micro.virtual_stages);
  if (!schedule) return schedule.failure();
  auto layers =
      layout::assign_layers(workload.shape.layers, schedule->placement(), micro.stage_layers);
  if (!layers) return layers.failure();
  if (!is_breadth_first(workload)) return StepLists{*std::move(schedule), *std::move(layers)};
  auto units = layout::unit_chunks(workload.shape.layers);
  const auto chunks = static_cast<int>(units.size());
  return StepLists{layout::breadth_first(chunks, micro.count), {std::move(units)}};
}

std::vector<StagePlan> plan_stages(const Workload& workload, const LayerOperations& operations,
                                   const OperationCosts& costs, const DataExchange& data,
                                   const StepLists& lists, Time norm) {
  StagePlanner planner(workload, operations, costs, data, lists.schedule);
  std::vector<StagePlan> plans;
  for (std::size_t stage = 0; stage < lists.layers.size(); ++stage) {
    plans.push_back(planner.plan(lists.layers[stage], static_cast<int>(stage), norm));
  }
  return plans;
}

}  // namespace trireme::predict
