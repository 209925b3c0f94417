// SPDX-License-Identifier: Apache-2.0
#include "trireme/layers/decoder_stage.hpp"

#include "layers/embedding.hpp"
#include "layers/head.hpp"
#include "layers/layer.hpp"

#include <optional>
#include <vector>

namespace trireme::layers {

using device::Tensor;
using model::Place;

struct DecoderStage::Parts {
  /// Context whose rows are those of the step at hand, as one sequence.
  StageContext context;
  Chunk::Role role;
  RotaryTables rotary;
  std::optional<Embedding> embedding;
  std::vector<TransformerLayer> layers;
  std::vector<KeyValueCache> caches;
  std::optional<Head> head;

  void use_rows(std::int64_t rows) {
    context.micro_batch = 1;
    context.sequence_length = rows;
  }
};

DecoderStage::DecoderStage(const StageContext& context, const model::StageParameters& stage,
                           const Chunk::Role& role, const Capacity& capacity, device::Arena& cache,
                           device::Arena& constants)
    : parts_(new Parts{context, role, {}, {}, {}, {}, {}}) {
  TRIREME_EXPECT(context.sequence_parallel == model::SequenceParallel::off,
                 "decoding does not split rows over tensor-parallel ranks");
  auto& own = parts_->context;
  if (own.config.has_rotary()) {
    parts_->rotary = make_rotary_tables(own, capacity.positions, constants);
  }
  if (role.first) parts_->embedding.emplace(own, stage);
  for (int layer = role.layers.begin; layer < role.layers.end; ++layer) {
    parts_->layers.emplace_back(own, stage, layer, parts_->rotary, ActivationSet{});
    parts_->caches.push_back(parts_->layers.back().make_cache(cache, capacity));
  }
  if (role.last) parts_->head.emplace(own, stage);
}

DecoderStage::~DecoderStage() = default;

void DecoderStage::run(std::span<const SequencePart> parts, const Tensor& tokens,
                       const Tensor& hidden) {
  parts_->use_rows(hidden.dim(0));
  auto* const weights = parts_->context.weights;
  if (parts_->embedding) {
    WeightLease lease(weights, {Place::Kind::embedding, 0}, Pass::forward);
    parts_->embedding->decode(parts, tokens, hidden);
    lease.end();
  }
  for (std::size_t layer = 0; layer < parts_->layers.size(); ++layer) {
    const int number = parts_->role.layers.begin + static_cast<int>(layer);
    WeightLease lease(weights, {Place::Kind::layer, number}, Pass::forward);
    parts_->layers[layer].decode({parts, parts_->caches[layer]}, hidden);
    lease.end();
  }
}

void DecoderStage::logits(const Tensor& hidden, const Tensor& logits) {
  parts_->use_rows(hidden.dim(0));
  WeightLease lease(parts_->context.weights, {Place::Kind::head, 0}, Pass::forward);
  parts_->head->logits(hidden, logits);
  lease.end();
}

std::int64_t DecoderStage::local_vocabulary() const {
  return parts_->head->local_vocabulary();
}

}  // namespace trireme::layers
