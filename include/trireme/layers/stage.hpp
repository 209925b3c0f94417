// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include <functional>
#include <memory>

namespace trireme::layers {

/// Consecutive layers at one position of the pipeline: a stage has one, or several when schedules
/// interleave. The first of the model holds the embedding, the last the head.
class Chunk {
 public:
  struct Role {
    layout::LayerRange layers{};
    bool first = false;
    bool last = false;
    /// Layers of the stage that lie in chunks before this one.
    int layers_before = 0;
  };

  /// `slots`: micro-batches whose activations are held at once; allocated here, once. Slots of
  /// a forward-only chunk keep nothing of one layer for the next.
  Chunk(const StageContext& context, const model::StageParameters& stage, const Role& role,
        int slots, device::Arena& activations, device::Arena& constants);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  Chunk(Chunk&&) noexcept;
  Chunk& operator=(Chunk&&) noexcept;

  /// input: [local_rows, hidden], unused by the first chunk; it must stay until backward.
  /// output: [local_rows, hidden], unused by the last chunk.
  void forward(const MicroBatch& batch, int slot, const device::Tensor& input,
               const device::Tensor& output);
  /// Forward without a backward to come; `losses` of the last chunk alone.
  void forward_only(const MicroBatch& batch, const device::Tensor& input,
                    const device::Tensor& output);
  /// d_output: unused by the last chunk; d_input: unused by the first. `completed` is told each
  /// place whose gradients of this micro-batch are all added up.
  void backward(const MicroBatch& batch, int slot, const device::Tensor& input,
                const device::Tensor& d_output, const device::Tensor& d_input,
                const std::function<void(const model::Place&)>& completed);

  /// f32 [rows]: losses of the last forward's tokens; the last chunk's alone.
  const device::Tensor& losses() const;
  /// The last chunk's alone: logits of all rows after a forward_only.
  /// logits: [rows, local vocabulary].
  void logits(const device::Tensor& logits) const;
  std::int64_t local_vocabulary() const;
  std::int64_t first_token() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::layers
