// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/bound.hpp"

#include "priced_layers.hpp"
#include "step_sizes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::predict {
namespace {

using LayerKey = std::array<std::int64_t, 5>;
using ExchangeKey = std::array<int, 5>;

LayerKey layer_key(const Workload& workload) {
  return {workload.degrees.tensor, workload.degrees.context, workload.degrees.world_size(),
          workload.micro_batches.sequences, workload.program.sequence_parallel ? 1 : 0};
}

ExchangeKey exchange_key(const Workload& workload) {
  const auto& degrees = workload.degrees;
  return {degrees.tensor, degrees.context, degrees.data, degrees.pipeline,
          static_cast<int>(workload.program.sharding)};
}

/// Work of a piece of the model, for one micro-batch.
struct ChunkWork {
  Time forward{};
  Time backward{};
  /// Time in which the host issues it.
  Time issue{};
  double elements = 0;

  void add_forward(const Segment& segment) {
    forward += segment.busy();
    issue += segment.issue;
  }
  void add_backward(const Segment& segment) {
    backward += segment.busy();
    issue += segment.issue;
  }
};

/// Sums of a stage's chunks.
struct StageWork {
  ChunkWork all;
  ChunkWork last;
  /// Elements of weights that are gathered, where units take turns in a ring.
  double gathered = 0;
  /// Way of the first micro-batch to the stage, and of the last one's gradient back from it.
  Time before{};
  Time behind{};
};

/// Bound of one layout.
class Bound {
 public:
  Bound(const Machine& machine, const Workload& workload, PricedLayers& priced,
        const PricedExchange& exchange)
      : workload_(workload),
        priced_(priced),
        exchange_(exchange),
        cores_(core_use(machine, workload.degrees.world_size()).cores),
        placement_{workload.degrees.pipeline, workload.micro_batches.virtual_stages,
                   layout::placement_kind(workload.micro_batches.schedule)},
        splits_backward_(layout::splits_backward(workload.micro_batches.schedule)) {}

  Time of(const std::vector<std::vector<layout::LayerRange>>& layers) {
    const auto stages = stages_of(layers);
    Time all{};
    Time end{};
    Time work{};
    for (const auto& stage : stages) {
      const auto after = end_of_step(workload_, priced_.costs(), exchange_.data(),
                                     stage.all.elements, exchange_.norm());
      all = std::max(all, of_stage(stage, after.reduce));
      end = std::max(end, after.update + after.gather);
      work += count() * (stage.all.forward + stage.all.backward);
    }
    if (cores_ > 0) {
      const int of_stage = workload_.degrees.world_size() / workload_.degrees.pipeline;
      all = std::max(all, work * of_stage / cores_);
    }
    return all + exchange_.norm() + end;
  }

 private:
  Picoseconds count() const { return workload_.micro_batches.count; }

  ChunkWork chunk_work(const layout::LayerRange& layers, int first_layer,
                       layout::ChunkPlace place) {
    const auto& shape = workload_.shape;
    const auto& parts = priced_.parts();
    const double tensor = workload_.degrees.tensor;
    const double table = static_cast<double>(shape.vocabulary * shape.hidden) / tensor;
    ChunkWork work;
    work.add_forward(parts.begin);
    work.add_backward(parts.begin);
    if (placement_.is_first(place)) {
      work.add_forward(parts.embedding);
      work.add_backward(parts.embedding_backward);
      work.elements += table;
    }
    for (int layer = 0; layer < layers.end - layers.begin; ++layer) {
      work.add_forward(parts.layer);
      work.add_backward(
          priced_.backward(workload_.program.recompute.in_layer(first_layer + layer)));
      work.elements += shape.layer_parameters() / tensor;
    }
    if (!placement_.is_last(place)) return work;
    work.add_forward(parts.head);
    const bool shares_table =
        shape.tied_head && placement_.first_stage() == placement_.last_stage();
    if (!shares_table) work.elements += table;
    if (workload_.program.head_backward_in_forward) {
      work.add_forward(parts.head_backward);
    } else {
      work.add_backward(parts.head_backward);
    }
    return work;
  }

  /// Elements of a chunk's layers that its passes gather, but for the first: two of the layers may
  /// be there.
  double again_gathered(const layout::LayerRange& layers) const {
    const double passes = is_breadth_first(workload_) ? 1 : 2.0 * static_cast<double>(count()) - 1;
    const int absent = std::max(0, layers.end - layers.begin - 2);
    return passes * absent * workload_.shape.layer_parameters() / workload_.degrees.tensor;
  }

  std::vector<StageWork> stages_of(const std::vector<std::vector<layout::LayerRange>>& layers) {
    std::vector<StageWork> stages(layers.size());
    std::vector<ChunkWork> positions(static_cast<std::size_t>(placement_.positions()));
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      int first_layer = 0;
      for (std::size_t chunk = 0; chunk < layers[stage].size(); ++chunk) {
        const layout::ChunkPlace place{static_cast<int>(stage), static_cast<int>(chunk)};
        const auto work = chunk_work(layers[stage][chunk], first_layer, place);
        first_layer += layers[stage][chunk].end - layers[stage][chunk].begin;
        positions[static_cast<std::size_t>(placement_.position_of(place))] = work;
        auto& sum = stages[stage];
        sum.all.forward += work.forward;
        sum.all.backward += work.backward;
        sum.all.issue += work.issue;
        sum.all.elements += work.elements;
        sum.last = work;
        sum.gathered += again_gathered(layers[stage][chunk]);
      }
    }
    Time forward{};
    Time backward{};
    // The first chunk of every stage is on the way down, before any stage's second.
    for (std::size_t position = 0; position < stages.size(); ++position) {
      stages[position].before = forward;
      stages[position].behind = splits_backward_ ? Time::zero() : backward;
      forward += positions[position].forward + priced_.parts().message;
      backward += positions[position].backward + priced_.parts().message;
    }
    return stages;
  }

  /// End of the stage's last action and a sum behind it, of what follows on stages before it, and
  /// of the collectives that data-parallel ranks have in between.
  Time of_stage(const StageWork& stage, Time sum) const {
    const auto work = count() * (stage.all.forward + stage.all.backward);
    const auto own = std::max(stage.before + work, count() * stage.all.issue);
    auto bound = own + std::max(sum, stage.behind);
    const auto& program = workload_.program;
    if (!exchange_.data().exists()) return bound;
    const bool reduces = program.overlaps_data || program.sharding == Sharding::gradients ||
                         program.sharding == Sharding::parameters;
    const auto reduced = reduces ? exchange_.data().least_reduce(stage.all.elements) : Time::zero();
    // Halves of backward that compute weights' gradients may come in any order of chunks; units
    // that take all micro-batches one after the other begin with the head.
    const bool is_any_order = splits_backward_ || is_breadth_first(workload_);
    const auto before_last = is_any_order ? Time::zero() : (count() - 1) * stage.last.backward;
    // Reductions begin behind the last chunk's last backward, which all forwards precede.
    const auto forwards = splits_backward_ ? Time::zero() : count() * stage.all.forward;
    bound = std::max(bound, stage.before + forwards + before_last + reduced);
    if (has_ring(workload_)) {
      // Gathers and reductions take turns.
      return std::max(bound,
                      exchange_.data().least_gather(stage.all.elements + stage.gathered) + reduced);
    }
    const bool gathers = program.overlaps_gathers && (program.sharding == Sharding::optimizer ||
                                                      program.sharding == Sharding::gradients);
    if (!gathers) return bound;
    const auto gathered = exchange_.data().least_gather(stage.all.elements);
    // The last chunk's first forward ends behind all gathers.
    const auto more_forwards = splits_backward_ ? Time::zero() : (count() - 1) * stage.last.forward;
    bound = std::max(bound, gathered + more_forwards + before_last + reduced);
    return std::max(bound, gathered + more_forwards + count() * stage.all.backward + stage.behind);
  }

  const Workload& workload_;
  PricedLayers& priced_;
  const PricedExchange& exchange_;
  int cores_;
  layout::Placement placement_;
  bool splits_backward_;
};

}  // namespace

struct LowerBounds::Priced {
  const Machine& machine;
  std::map<LayerKey, PricedLayers> layers;
  std::map<ExchangeKey, PricedExchange> exchanges;

  PricedLayers& layers_of(const Workload& workload) {
    return layers.try_emplace(layer_key(workload), machine, workload).first->second;
  }
};

LowerBounds::LowerBounds(const Machine& machine)
    : priced_(std::make_unique<Priced>(Priced{machine, {}, {}})) {}

LowerBounds::~LowerBounds() = default;

Time LowerBounds::of(const Workload& workload) {
  const auto& micro = workload.micro_batches;
  const layout::Placement placement{workload.degrees.pipeline, micro.virtual_stages,
                                    layout::placement_kind(micro.schedule)};
  const auto layers = layout::assign_layers(workload.shape.layers, placement, micro.stage_layers);
  if (!layers) return Time::zero();
  auto& priced = priced_->layers_of(workload);
  const auto& exchange =
      priced_->exchanges.try_emplace(exchange_key(workload), priced_->machine, workload)
          .first->second;
  return Bound(priced_->machine, workload, priced, exchange).of(*layers);
}

double LowerBounds::product_share(const Workload& workload) {
  return priced_->layers_of(workload).operations().product_share();
}

}  // namespace trireme::predict
