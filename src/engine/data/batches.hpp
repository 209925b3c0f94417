// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/layers/stage_context.hpp"
#include "trireme/layout/chunk_buffers.hpp"

#include "engine/graphs/graphs.hpp"

#include <cstdint>
#include <vector>

namespace trireme::engine {

/// Micro-batches of a step: tokens in host memory for the caller to fill, their copies where
/// kernels read them, and, where CUDA graphs are made, static inputs to which they are copied in
/// turn.
class Batches {
 public:
  /// `buffers` of each chunk. `graphs` and `memory` outlive this.
  Batches(const EngineOptions& options, const Graphs& graphs,
          const std::vector<layout::ChunkBuffers>& buffers, device::Device& device, Memory& memory);

  int count() const { return static_cast<int>(batches_.size()); }
  /// Tokens of micro-batch `index` in host memory; once this returns, former ones have been
  /// uploaded.
  TokenBuffers& host(int index);
  /// Scale of the gradients of the next step, for the next upload.
  void set_loss_scale(float scale);
  /// Copies all tokens and the scale to the device, where the host's memory is not the device's.
  void upload();

  /// Micro-batch `index` as kernels read it.
  layers::MicroBatch evaluation(int index) const;
  /// Micro-batch of training: with dropout and the scale of its gradients.
  layers::MicroBatch training(int index) const;

  /// Static input of a slot, which replaces `batch` in CUDA graphs, whose addresses are fixed.
  /// Without graphs `batch` itself.
  layers::MicroBatch static_input(std::size_t chunk, std::size_t slot,
                                  const layers::MicroBatch& batch) const;
  /// Static input of a slot, after `batch` was copied there.
  layers::MicroBatch load_static_input(std::size_t chunk, std::size_t slot,
                                       const layers::MicroBatch& batch) const;

  /// Targets of the rank's micro-batches that are not left out; 1 over measuring memory.
  std::int64_t counted_tokens() const;

 private:
  struct Batch {
    TokenBuffers host;
    /// i32 [4] in host memory, from which device.places is uploaded.
    device::Tensor host_places;
    layers::MicroBatch device;
  };
  device::Tensor allocate_first_keys(device::Arena& arena) const;
  void make_static_inputs(const std::vector<layout::ChunkBuffers>& buffers);

  const Graphs& graphs_;
  device::Device& device_;
  Memory& memory_;
  std::int64_t rows_;  // of a micro-batch
  std::int64_t sequence_length_;
  float dropout_;  // share of activations that training leaves out
  bool masks_documents_;
  std::vector<Batch> batches_;
  device::Tensor loss_scale_;                                   // f32 [1]
  device::Tensor host_loss_scale_;                              // f32 [1] in host memory
  std::vector<std::vector<layers::MicroBatch>> static_inputs_;  // [chunk][slot]
  /// Event after which the host may write new tokens.
  device::Event uploaded_;
};

}  // namespace trireme::engine
