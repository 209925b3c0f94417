// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include "layers/layer.hpp"
#include "layers/tensor_parallel.hpp"
#include "sequence_rows.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace trireme::layers {

/// Forward of a micro-batch through the layers of a chunk, with the gathers and sums of
/// tensor-parallel ranks around their parts.
///
/// Halves of a micro-batch take turns: one computes the GEMM back of a part and the next one's wide
/// GEMM while the sum of the other's part is under way, and then the gather for its next part, also
/// from layer to layer. Two layers' weights are leased for a short time.
class LayersForward {
 public:
  /// One layer; x, out: [local_rows, hidden].
  struct Step {
    const TransformerLayer& layer;
    model::Place place;
    const LayerActivations& kept;
    device::Tensor x;
    device::Tensor out;
  };

  LayersForward(const StageContext& context, const MicroBatch& batch, std::vector<Step> steps);
  LayersForward(const LayersForward&) = delete;
  LayersForward& operator=(const LayersForward&) = delete;
  ~LayersForward() = default;

  void run();

 private:
  /// One part of a layer for one half of the rows, or for all.
  struct Turn {
    std::size_t step;
    bool is_mixer;
    std::size_t half;
  };
  Turn turn_at(std::size_t number) const;
  bool takes_halves() const { return rows_.size() > 1; }
  bool ends_layer(const Turn& turn) const {
    return !turn.is_mixer && turn.half + 1 == rows_.size();
  }

  /// Begins a layer for one half: to the gather of the mixer's input.
  void open(std::size_t step, std::size_t half);
  /// The turn's first product, of the input of all ranks.
  void run_wide(const Turn& turn);
  /// The product back, whose sum begins.
  void run_back(const Turn& turn);
  /// Work behind the turn's sum, up to the next gather of the same rows in the layer.
  void settle(const Turn& turn);
  /// Begins the layer that follows the turn, if one does.
  void open_next(const Turn& turn);
  /// Work behind the other half's sum, between the products of turn `number`. The gather that
  /// begins with it needs products before the next turn, a sum without one those before.
  void go_on_beside(std::size_t number);
  /// Behind the last product of a layer.
  void close(std::size_t step);
  void start_gather(std::size_t half, const device::Tensor& input);
  const LayerPart& part_of(const Turn& turn) const;
  const PartActivations& kept_of(const Turn& turn) const;

  const StageContext& context_;
  std::vector<SequenceRows> rows_;
  std::vector<MicroBatch> batches_;  // [half]
  const MicroBatch& batch_;
  std::vector<Step> steps_;
  device::ArenaScope scope_;
  BorderActivations border_;
  /// [local_rows, hidden]: a part's output.
  device::Tensor branch_;
  /// [rows, hidden]: of each half in turn what is gathered for a part, and the terms of its output,
  /// which no kernel writes before the part's first product; empty where a rank has all rows.
  device::Tensor room_;
  std::optional<telemetry::SpanScope> span_;
  std::array<std::optional<WeightLease>, 2> leases_;
  /// Views of a layer's activations, [step % 2][half].
  std::array<std::vector<LayerActivations>, 2> halves_;
  /// Memory of a layer beside the border.
  std::optional<device::ArenaScope> layer_scope_;
  std::vector<PendingRows> inputs_;  // [half]
  std::vector<Pending> sums_;        // [half]
};

}  // namespace trireme::layers
