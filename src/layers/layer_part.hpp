// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/attention/key_value_cache.hpp"
#include "layers/forward/sequence_rows.hpp"

#include <memory>

namespace trireme::layers {

/// Activations that gradients of weights read, and that are kept for them; empty if they are
/// computed again.
struct PartOperands {
  device::Tensor input;   // [local_rows, hidden]: the normalised residual stream
  device::Tensor middle;  // [rows, width]: what the row-parallel GEMM back reads
  device::Tensor wide;    // [rows, width], where its gradient is written over it: the
                          // column-parallel GEMM's output
};

/// Activations that a part of a layer keeps from forward for backward. All parts have these; each
/// kind of part has more.
struct PartActivations {
  PartActivations() = default;
  PartActivations(const PartActivations&) = default;
  PartActivations& operator=(const PartActivations&) = default;
  virtual ~PartActivations() = default;

  device::Tensor input;     // [local_rows, hidden]: the normalised residual stream
  device::Tensor all_rows;  // [rows, hidden]: the input of all ranks, where it is gathered for both
                            // another forward and the weight gradient
  device::Tensor middle;    // [rows, width]: what the row-parallel GEMM back reads
};

/// Columns of the column-parallel GEMM's output: of its matrix, rows.
enum class WideColumns { all, first_half, second_half };

/// Tensors that backward_input leaves for the weights' gradients.
struct PartGradients {
  device::Tensor d_out;   // [rows, hidden]: of the part's output; left for later: the local rows
  device::Tensor d_wide;  // [rows, width]: of the column-parallel GEMM's output
  // Activations that are not kept, but computed again, where backward_weight comes later.
  device::Tensor input;   // [local_rows, hidden]
  device::Tensor middle;  // [rows, width]
};

/// Part of a transformer layer, over rows of the normalised residual stream: a column-parallel
/// GEMM, something in the middle, a row-parallel GEMM back. Its backward is the gradient of the
/// input, for which another stage may wait, and those of two matrices, for which none does; the
/// layer gathers and sums rows around them.
class LayerPart {
 public:
  using Kept = std::unique_ptr<PartActivations>;

  LayerPart() = default;
  LayerPart(const LayerPart&) = delete;
  LayerPart& operator=(const LayerPart&) = delete;
  virtual ~LayerPart() = default;

  /// Activations that backward needs, but operands and those that are discarded.
  virtual Kept allocate(device::Arena& arena, ActivationSet discarded) const = 0;
  virtual PartOperands allocate_operands(device::Arena& arena, ActivationSet discarded) const = 0;
  /// Makes the operands a part of what is kept.
  virtual void bind(PartActivations& kept, const PartOperands& operands) const {
    kept.input = operands.input;
    kept.middle = operands.middle;
  }
  /// The same, with a place for each that is missing: that of `gradients`, or in the workspace.
  virtual Kept completed(const PartActivations& kept, const PartGradients& gradients) const = 0;
  /// Place of d_wide: over an activation that nobody reads again, or in the arena.
  virtual device::Tensor place_of_gradient(device::Arena& arena,
                                           const PartActivations& kept) const = 0;
  /// Room for what has none in the operands, but d_out, where the weights' gradients come later.
  virtual PartGradients allocate_left(device::Arena& arena, ActivationSet discarded) const = 0;

  /// Views of what is kept of some sequences.
  virtual Kept part_of(const PartActivations& kept, const SequenceRows& rows) const = 0;
  // Forward: of the sequences that `kept` is of, it writes all that is kept but the input.
  /// The column-parallel GEMM. input: [rows, hidden], of all ranks.
  virtual void forward_wide(const PartActivations& kept, const device::Tensor& input) const = 0;
  /// From there to what the row-parallel GEMM reads.
  virtual void forward_middle(const MicroBatch& batch, const PartActivations& kept) const = 0;
  /// The row-parallel GEMM. terms: [rows, hidden], whose sum over the ranks is the output.
  virtual void forward_back(const PartActivations& kept, const device::Tensor& terms) const = 0;
  /// Computes again what `kept` lacks of `whole`, but for the input. Its workspace is the caller's
  /// scope.
  virtual void restore(const MicroBatch& batch, const PartActivations& kept,
                       PartActivations& whole) const = 0;
  /// Reads d_out of all rows and writes d_wide. terms: [rows, hidden], whose sum over the ranks is
  /// the gradient of the input.
  virtual void backward_input(const MicroBatch& batch, const PartActivations& kept,
                              const PartGradients& gradients,
                              const device::Tensor& terms) const = 0;
  /// Gradients of the GEMM back: reads middle and d_out.
  virtual void backward_weight_back(const device::Tensor& middle,
                                    const PartGradients& gradients) const = 0;
  /// Gradients of the column-parallel GEMM: reads d_wide and the input of all rows.
  virtual void backward_weight_wide(const device::Tensor& rows, const PartGradients& gradients,
                                    WideColumns columns) const = 0;
};

/// Part that mixes the rows of a sequence: attention.
class Mixer : public LayerPart {
 public:
  virtual KeyValueCache make_cache(device::Arena& arena,
                                   const DecoderStage::Capacity& capacity) const = 0;
  /// Forward of new tokens, which join the cache. Reads working.input; out: [rows, hidden].
  virtual void decode(const CachedRows& rows, const PartActivations& working,
                      const device::Tensor& out) const = 0;
};

/// Part that takes each row by itself: a feed-forward.
class ChannelPart : public LayerPart {};

}  // namespace trireme::layers
