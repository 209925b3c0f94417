#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage.hpp"
#include "trireme/model/stage_parameters.hpp"

#include "gradients.hpp"
#include "pipeline.hpp"
#include "registrations.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace trireme::engine {

struct Engine::Parts {
  EngineOptions options;
  Groups groups;
  device::Kernels& kernels;
  Memory& memory;
  model::StageParameters stage;
  layout::Schedule schedule;
  /// Null where nothing is recorded, and so is what layers then meet other ranks through.
  std::unique_ptr<RecordedSections> recorded;
  std::unique_ptr<comm::ProcessGroup> between_recordings;
  model::StageContext context;
  device::Tensor flat_parameters;
  device::Tensor flat_gradients;  // f32, empty for inference
  std::optional<model::KeptCopies> weight_copies;
  std::vector<model::Chunk> chunks;
  std::vector<ChunkMessages> messages;
  std::vector<int> slots;
  std::vector<TokenBuffers> batches;  // host memory
  /// The same tokens where kernels find them, and when the host may write new ones.
  std::vector<model::MicroBatch> device_batches;
  /// Where recordings find where a micro-batch begins: host memory, like batches.
  std::vector<device::Tensor> places;
  std::vector<std::vector<model::MicroBatch>> standing;
  device::Event uploaded;
  device::Tensor logits;
  std::optional<GradientReducer> reducer;
  std::optional<optim::Optimizer> optimizer;
  std::optional<PipelineExecutor> executor;
  /// Of what collectives and messages work in; ends before memory and groups do.
  Registrations registrations;
  double gradient_norm = 0;

  Parts(const EngineOptions& given, const Groups& their_groups, device::Kernels& their_kernels,
        Memory& their_memory);

  bool trains() const { return options.use == Use::training; }
  // Of a training engine alone.
  GradientReducer& reduction();
  optim::Optimizer& updates();
  PipelineExecutor& pipeline();
  int my_stage() const { return options.mesh.coordinate(layout::Axis::pipeline, options.rank); }
  void make_parameters();
  void make_chunks();
  void make_batches();
  void make_standing_batches();
  void make_executor();
  /// Whether memory has room for recordings, and whether they are made.
  bool may_record() const;
  bool records() const;
  void upload_batches();
  model::MicroBatch training_batch(int index, float loss_scale) const;
  model::MicroBatch evaluation_batch(int index) const;
  double whole_loss_sum(double local) const;
  std::int64_t counted_tokens();
  void gather_parameters() const;
  /// Before micro-batches read them.
  void renew_weight_copies() const;
};

}  // namespace trireme::engine
