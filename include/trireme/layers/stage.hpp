// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/chunk_buffers.hpp"

#include <functional>
#include <memory>
#include <vector>

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

    /// In the order of forward.
    std::vector<model::Place> places() const;
  };

  /// Micro-batches in whose places a pass works, modulo the chunk's buffers.
  struct Places {
    int slot = 0;      ///< of activations
    int operands = 0;  ///< of those that weights' gradients read
    int left = 0;      ///< of what backward_input leaves for backward_weight
  };

  /// Activations of as many micro-batches as `buffers` says are allocated here, once. Those of a
  /// forward-only chunk keep nothing of one layer for the next. `beside`: another chunk of the
  /// stage, whose constants serve this one, too.
  Chunk(const StageContext& context, const model::StageParameters& stage, const Role& role,
        const layout::ChunkBuffers& buffers, device::Arena& activations, device::Arena& constants,
        const Chunk* beside = nullptr);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  Chunk(Chunk&&) noexcept;
  Chunk& operator=(Chunk&&) noexcept;

  /// input: [local_rows, hidden], unused by the first chunk; it must stay until backward.
  /// output: [local_rows, hidden], unused by the last chunk.
  void forward(const MicroBatch& batch, Places places, const device::Tensor& input,
               const device::Tensor& output);
  /// Forward without a backward to come; `losses` of the last chunk alone.
  void forward_only(const MicroBatch& batch, const device::Tensor& input,
                    const device::Tensor& output);
  /// d_output: unused by the last chunk; d_input: unused by the first. `completed` is told each
  /// place whose gradients of this micro-batch are all added up.
  void backward(const MicroBatch& batch, Places places, const device::Tensor& input,
                const device::Tensor& d_output, const device::Tensor& d_input,
                const std::function<void(const model::Place&)>& completed);
  /// Gradients of the input, of norms' weights and of the embedding. d_output must stay until
  /// backward_weight.
  void backward_input(const MicroBatch& batch, Places places, const device::Tensor& input,
                      const device::Tensor& d_output, const device::Tensor& d_input);
  /// Gradients of the layers' matrices: all that backward_input has not added.
  void backward_weight(Places places, const device::Tensor& d_output,
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
