// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include "layer_part.hpp"
#include "tensor_parallel.hpp"

#include <optional>
#include <utility>

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

/// When the gradients of a part's matrices are computed.
enum class Weights {
  beside_sum,     ///< both while the gradient of the input is summed over ranks
  beside_gather,  ///< one of them while the next part's rows are gathered
  later           ///< not with the gradient of the input
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

  /// d_out, d_input: [local_rows, hidden]. `before`: a part that has run beside_gather, or null;
  /// both may have the same rooms.
  void run(const MicroBatch& batch, const device::Tensor& d_out, const device::Tensor& d_input,
           Weights weights, PartBackward* before, BackwardSpan& span);

 private:
  void start_input_gather();
  /// Gradient of the matrix that is left, if one is.
  void finish_weights(BackwardSpan& span);

  const StageContext& context_;
  const LayerPart& part_;
  const PartActivations& kept_;
  PartGradients gradients_;
  Rooms rooms_;
  PendingRows input_;
  bool is_wide_left_ = false;
};

}  // namespace trireme::layers
