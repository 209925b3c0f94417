// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include "layer_part.hpp"
#include "tensor_parallel.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace trireme::layers {

/// Span of what a layer's backward is computing, gradients of inputs at first: one ends where the
/// next begins.
class BackwardSpan {
 public:
  explicit BackwardSpan(int layer) : layer_(layer) { begin(); }
  void enter(telemetry::SpanKind kind) {
    if (kind != std::exchange(kind_, kind)) begin();
  }

 private:
  void begin() { span_.emplace(kind_, telemetry::SpanPlace{.number = layer_}); }

  int layer_;
  telemetry::SpanKind kind_ = telemetry::SpanKind::layer_backward_input;
  std::optional<telemetry::SpanScope> span_;
};

/// When the gradients of a layer's matrices are computed.
enum class Weights {
  beside_collectives,  ///< of gradients of inputs
  later                ///< not with gradients of inputs
};

/// Rooms that layers' backward hands on, and what is under way in them.
struct BackwardRooms {
  /// [rows, hidden] each, empty where a rank has all rows. They take turns: what one part gathers
  /// into, the other's terms are in.
  device::Tensor turns[2];
  /// All rows of the gradient of the next layer's output, if their gather has begun.
  PendingRows d_out;
  /// Whether there is a next layer.
  bool goes_on = false;
};

/// Backward of one part of a layer, with the gathers and the sum of tensor-parallel ranks around
/// it.
class PartBackward {
 public:
  /// [rows, hidden] each; empty where a rank has all rows.
  struct Rooms {
    device::Tensor d_out;
    device::Tensor terms;
    device::Tensor input;  ///< not with Weights::later
  };

  PartBackward(const StageContext& context, const LayerPart& part, const PartActivations& kept,
               PartGradients gradients, Rooms rooms)
      : context_(context),
        part_(part),
        kept_(kept),
        gradients_(std::move(gradients)),
        rooms_(std::move(rooms)) {}

  /// Gathers the output's gradient, of which d_out is [local_rows, hidden], unless `begun` does.
  void start(const device::Tensor& d_out, PendingRows begun = {});
  /// Gathers the input, for the gradient of the column-parallel GEMM's weights.
  void start_input_gather();
  /// Gradient of the input, [local_rows, hidden], whose sum over ranks begins.
  Pending run(const MicroBatch& batch, const device::Tensor& d_input);
  void add_weight_back() const { part_.backward_weight_back(kept_.middle, gradients_); }
  void add_weight_wide(WideColumns columns) {
    part_.backward_weight_wide(input_.join(), gradients_, columns);
  }

 private:
  const StageContext& context_;
  const LayerPart& part_;
  const PartActivations& kept_;
  PartGradients gradients_;
  Rooms rooms_;
  PendingRows d_rows_;
  PendingRows input_;
};

/// Whether the gradient of the channel part's column-parallel GEMM is made in halves.
bool cuts_weights(const StageContext& context);

/// Gradients of a layer's matrices, and beside which collectives of gradients of inputs they are
/// computed.
class WeightProducts {
 public:
  enum class Beside { channel_sum, mixer_gather, mixer_sum, next_gather };

  /// None; parts and span outlive it.
  explicit WeightProducts(BackwardSpan& span) : span_(span) {}
  /// All of the layer's.
  void add(const StageContext& context, PartBackward& channel, PartBackward& mixer);
  bool any(Beside collective) const { return !at(collective).empty(); }
  void run(Beside collective);

 private:
  using Products = std::vector<std::function<void()>>;
  const Products& at(Beside collective) const {
    return products_[static_cast<std::size_t>(collective)];
  }
  Products& at(Beside collective) { return products_[static_cast<std::size_t>(collective)]; }

  BackwardSpan& span_;
  std::array<Products, 4> products_;
};

}  // namespace trireme::layers
