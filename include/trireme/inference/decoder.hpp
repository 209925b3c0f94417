// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/layers/decoder_stage.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace trireme::inference {

/// Settings that determine the computation and the memory of a decoding rank.
struct DecoderOptions {
  model::ModelConfig model;
  layout::Mesh mesh = layout::Mesh::of(1, 1, 1);
  base::Rank rank{0};
  /// Parts of the model on each stage, and their order, as an engine has them.
  int virtual_stages = 1;
  layout::PlacementKind placement_kind = layout::PlacementKind::round_robin;
  /// Layers of each position of the model; empty for an even assignment.
  std::vector<int> stage_layers;
  device::DType dtype = device::DType::f32;
  /// Attention kernels of GPUs; nothing on CPUs.
  std::optional<device::AttentionChoice> gpu_attention;
  /// Sequences at once, and positions that each may reach.
  layers::DecoderStage::Capacity capacity;
  /// New tokens of one step at most: from one a slot to as many as the caches have places.
  std::int64_t rows_at_once = 1;

  layout::Placement placement() const {
    return {mesh.degree(layout::Axis::pipeline), virtual_stages, placement_kind};
  }
};

/// Whether own kernels of GPUs, which decode alone there, take the model's heads: up to
/// device::widest_own_head.
bool can_decode_on_gpus(const model::ModelConfig& model);

/// Refuses options that do not fit together, with key, value and rule.
base::Status check(const DecoderOptions& options);

/// Runs new tokens of several sequences through all stages of one data-parallel replica, with the
/// cached keys and values of all earlier ones. Data-parallel replicas are independent. Reasons for
/// ragged steps: docs/decisions/0024.
class Decoder {
 public:
  /// Groups `tensor` and `pipeline` are used.
  Decoder(const DecoderOptions& options, const comm::AxisGroups& groups, device::Kernels& kernels,
          engine::Memory& memory);
  /// Decodes with the parameters of an engine of the same rank and layout, which it reads as they
  /// are at each step; the rest of its memory comes from that engine's arenas.
  Decoder(const DecoderOptions& options, const engine::Engine& engine,
          const comm::AxisGroups& groups, device::Kernels& kernels, engine::Memory& memory);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Parts of its own parameters that this rank has, on its device: for the caller to fill.
  std::vector<engine::ParameterPart> parameter_parts();

  /// Collective over the replica. tokens: those of all parts, row after row. On the last stage:
  /// f32 [1, parts, vocabulary] in host memory, the logits after the last token of each part, the
  /// same bits on every tensor-parallel rank; valid until the next call. Empty on other stages.
  device::Tensor run(std::span<const layers::SequencePart> parts,
                     std::span<const std::int32_t> tokens);
  /// Collective over the replica. The step that needs the most memory, of made-up tokens; over
  /// measuring memory it is measured.
  void run_largest();
  /// Collective over the replica. A step with a token of no sequence, when all slots are free: for
  /// a replica that has nothing to decode while others do, and gather weights with it.
  void run_nobodys();
  bool is_last_stage() const;
  /// Collective over the pipeline: distributes the last stage's choices to all stages.
  void share(std::span<std::int32_t> chosen);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Bytes that this rank needs: the decoder, run over measuring memory for its largest step.
engine::MemoryUse measure(const DecoderOptions& options);

}  // namespace trireme::inference
