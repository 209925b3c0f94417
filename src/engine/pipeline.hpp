// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/layers/stage.hpp"
#include "trireme/layout/chunk_buffers.hpp"

#include "engine/data/batches.hpp"
#include "engine/graphs/graphs.hpp"
#include "engine/totals/exact_sum.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace trireme::engine {

/// Messages between neighbouring chunks: rings of buffers, receives posted one action ahead,
/// sends that overlap the next action. Neighbours on one stage share the reader's ring instead.
class ChunkMessages {
 public:
  struct Shape {
    std::int64_t rows = 0;
    std::int64_t width = 0;
    device::DType dtype = device::DType::f32;
  };
  /// Place of the chunk, and of those before and after it in the model.
  struct Places {
    layout::ChunkPlace before;
    layout::ChunkPlace own;
    layout::ChunkPlace after;
  };
  ChunkMessages(comm::ProcessGroup& pipeline, const Places& places, const Shape& shape,
                const layout::ChunkBuffers& needs, layout::Passes passes, device::Arena& arena);

  bool is_first() const { return before_ == layout::no_place; }
  bool is_last() const { return after_ == layout::no_place; }
  /// Hands outputs over to the next chunk, which is on the same stage, and takes its gradients,
  /// without messages: each writes where the other reads.
  void hand_over_to(ChunkMessages& next);
  /// Takes the gradients of outputs where `other` does, which needs them at other times.
  void share_output_gradients(const ChunkMessages& other);

  /// Posts the receive that an action needs, unless it is posted or there is none.
  void expect_input(int micro_batch);
  void expect_output_gradient(int micro_batch);
  /// Input of an action, ordered on the device's stream before its next kernel; the host need not
  /// wait. Empty where the model begins or ends.
  device::Tensor input(int micro_batch, device::Stopwatch& waiting);
  device::Tensor output_gradient(int micro_batch, device::Stopwatch& waiting);
  /// The same, kept for backward.
  device::Tensor kept_input(int micro_batch) const { return kept(inputs_, micro_batch); }
  device::Tensor kept_output_gradient(int micro_batch) const {
    return kept(output_gradients_, micro_batch);
  }
  /// Buffer that no send uses any more, by the order of the device's stream.
  device::Tensor output_buffer(int micro_batch);
  device::Tensor input_gradient_buffer(int micro_batch);
  void send_output(int micro_batch);
  void send_input_gradient(int micro_batch);

  void poll();
  /// Waits for all sends and resets the state of the step.
  void finish();

 private:
  struct Ring {
    std::vector<device::Tensor> buffers;
    std::vector<comm::Work> works;
    bool is_local = false;  // both ends are chunks of this stage: there are no messages
    int posted = 0;         // micro-batches whose receive was posted

    std::size_t place(int micro_batch) const {
      return static_cast<std::size_t>(micro_batch) % buffers.size();
    }
  };
  void make_ring(Ring& ring, int count, const Shape& shape, device::Arena& arena);
  void expect(Ring& ring, int micro_batch, layout::ChunkPlace from, int tag);
  static device::Tensor take(Ring& ring, int micro_batch, device::Stopwatch& waiting);
  static device::Tensor kept(const Ring& ring, int micro_batch);
  static device::Tensor free_buffer(Ring& ring, int micro_batch);

  bool is_here(layout::ChunkPlace place) const { return place.stage == pipeline_.rank(); }

  comm::ProcessGroup& pipeline_;
  layout::ChunkPlace before_;
  layout::ChunkPlace after_;
  int forward_in_tag_;
  int forward_out_tag_;
  int backward_in_tag_;
  int backward_out_tag_;
  Ring inputs_;
  Ring outputs_;
  Ring output_gradients_;
  Ring input_gradients_;
};

/// Runs the action list of one stage.
class PipelineExecutor {
 public:
  using Completed = std::function<void(const model::Place&)>;
  struct Stage {
    std::vector<layers::Chunk>& chunks;
    std::vector<ChunkMessages>& messages;
    const std::vector<layout::ChunkBuffers>& buffers;  // [chunk]
    /// Called for each part of the model whose gradients of the whole step have been summed; may be
    /// empty.
    Completed completed;
    const Batches& batches;
    Graphs& graphs;
  };

  PipelineExecutor(const Stage& stage, device::Kernels& kernels)
      : stage_(stage), kernels_(kernels), waiting_(kernels.device().stopwatch()) {}

  /// Forward and backward of all micro-batches.
  void run(const std::vector<layout::Action>& actions);
  /// Only the forward actions of the list, in its order: no stage runs ahead of what its neighbours
  /// have buffers for. `seen` is called with each micro-batch that has left the last chunk of the
  /// model.
  void run_forward_only(const std::vector<layout::Action>& actions,
                        const std::function<void(int)>& seen);
  void poll();

  /// Sum of the losses of the last run's micro-batches; the only function in which the host waits
  /// for its kernels.
  ExactSum loss_sum();
  /// Time that the device, or the host where it computes, waited for messages; a wait that the
  /// device has not reached yet is reported by a later call.
  double take_waited_seconds() { return waiting_->take(); }

 private:
  void expect(const layout::Action& action);
  /// Posts the receives of action number `index` and of the next one that has any.
  void expect_from(const std::vector<layout::Action>& actions, std::size_t index);
  layers::Chunk::Places places_of(const layout::Action& action) const;
  /// Number by which a graph knows what of which chunk it holds.
  int part_of(const layout::Action& action) const;
  /// True for the last micro-batch, if somebody wants to hear what its gradients complete.
  bool tells(const layout::Action& action) const {
    return stage_.completed && action.micro_batch + 1 == stage_.batches.count();
  }
  /// Function that tells it between the layers of an action, or does nothing.
  Completed teller_of(const layout::Action& action);
  template <typename Body>
  void run_part(CudaGraphCache::Key key, const layers::MicroBatch& batch, const Body& body);
  void forward(const layout::Action& action, const layers::MicroBatch& batch);
  /// The whole, or its input's half.
  void backward(const layout::Action& action, const layers::MicroBatch& batch);
  void backward_weight(const layout::Action& action, const layers::MicroBatch& batch);

  Stage stage_;
  device::Kernels& kernels_;
  std::unique_ptr<device::Stopwatch> waiting_;
};

}  // namespace trireme::engine
