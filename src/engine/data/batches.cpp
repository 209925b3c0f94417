// SPDX-License-Identifier: Apache-2.0
#include "batches.hpp"

#include "engine/chunks.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace trireme::engine {

using device::Purpose;
using device::Tensor;

namespace {

Tensor allocate_tokens(device::Arena& arena, std::int64_t rows) {
  return arena.allocate(device::DType::i32, {rows});
}

/// layers::MicroBatch::loss_scale.
Tensor allocate_scale(device::Arena& arena) {
  return arena.allocate(device::DType::f32, {1});
}

/// layers::MicroBatch::places.
Tensor allocate_places(device::Arena& arena) {
  return arena.allocate(device::DType::i32, {4});
}

}  // namespace

Batches::Batches(const EngineOptions& options, const Graphs& graphs,
                 const std::vector<layout::ChunkBuffers>& buffers, device::Device& device,
                 Memory& memory)
    : graphs_(graphs),
      device_(device),
      memory_(memory),
      rows_(options.schedule.micro_batch * rank_tokens(options.schedule, options.sharding.mesh)),
      sequence_length_(options.schedule.sequence_length),
      dropout_(options.model.dropout),
      masks_documents_(masks_documents(options)),
      batches_(static_cast<std::size_t>(options.schedule.micro_batches)) {
  auto& arena = memory.of(Purpose::batch);
  auto* const staging = memory.batch_staging();
  for (auto& batch : batches_) {
    batch.device.tokens = allocate_tokens(arena, rows_);
    batch.device.targets = allocate_tokens(arena, rows_);
    batch.device.first_keys = allocate_first_keys(arena);
    batch.host = {batch.device.tokens, batch.device.targets, batch.device.first_keys};
    if (staging != nullptr) {
      batch.host.tokens = allocate_tokens(*staging, rows_);
      batch.host.targets = allocate_tokens(*staging, rows_);
      batch.host.first_keys = allocate_first_keys(*staging);
    }
    if (!masks_documents_ || arena.is_measuring()) continue;
    std::fill_n(batch.host.first_keys.i32(), rows_, 0);
  }
  loss_scale_ = allocate_scale(arena);
  host_loss_scale_ = staging != nullptr ? allocate_scale(*staging) : loss_scale_;
  if (graphs.wanted()) make_static_inputs(buffers);
}

Tensor Batches::allocate_first_keys(device::Arena& arena) const {
  return masks_documents_ ? allocate_tokens(arena, rows_) : Tensor{};
}

void Batches::make_static_inputs(const std::vector<layout::ChunkBuffers>& buffers) {
  auto& arena = memory_.of(Purpose::batch);
  auto* const staging = memory_.batch_staging();
  for (auto& batch : batches_) {
    batch.device.places = allocate_places(arena);
    batch.host_places = staging != nullptr ? allocate_places(*staging) : batch.device.places;
  }
  for (const auto& needs : buffers) {
    auto& of_chunk = static_inputs_.emplace_back();
    for (int slot = 0; slot < needs.activations; ++slot) {
      auto& input = of_chunk.emplace_back();
      input.tokens = allocate_tokens(arena, rows_);
      input.targets = allocate_tokens(arena, rows_);
      input.places = allocate_places(arena);
      input.first_keys = allocate_first_keys(arena);
    }
  }
}

TokenBuffers& Batches::host(int index) {
  uploaded_.wait();
  return batches_[static_cast<std::size_t>(index)].host;
}

void Batches::set_loss_scale(float scale) {
  if (memory_.of(Purpose::batch).is_measuring()) return;
  uploaded_.wait();
  host_loss_scale_.f32()[0] = scale;
}

void Batches::upload() {
  if (memory_.batch_staging() == nullptr) return;
  uploaded_.wait();
  for (const auto& batch : batches_) {
    if (graphs_.made()) {
      const auto sequence = batch.host.first_sequence;
      const std::array<std::int64_t, 2> numbers{sequence, sequence * sequence_length_};
      std::memcpy(batch.host_places.i32(), numbers.data(), sizeof numbers);
      device_.copy_in(batch.host_places.raw(), batch.device.places);
    }
    device_.copy_in(batch.host.tokens.raw(), batch.device.tokens);
    device_.copy_in(batch.host.targets.raw(), batch.device.targets);
    if (masks_documents_) device_.copy_in(batch.host.first_keys.raw(), batch.device.first_keys);
  }
  device_.copy_in(host_loss_scale_.raw(), loss_scale_);
  uploaded_ = device_.record();
}

layers::MicroBatch Batches::evaluation(int index) const {
  const auto& batch = batches_[static_cast<std::size_t>(index)];
  auto given = batch.device;
  if (!graphs_.made()) {
    given.first_sequence = batch.host.first_sequence;
    given.places = {};
  }
  return given;
}

layers::MicroBatch Batches::training(int index) const {
  auto given = evaluation(index);
  given.loss_scale = loss_scale_;
  given.dropout = dropout_;
  return given;
}

layers::MicroBatch Batches::static_input(std::size_t chunk, std::size_t slot,
                                         const layers::MicroBatch& batch) const {
  if (!graphs_.made()) return batch;
  auto given = static_inputs_[chunk][slot];
  given.loss_scale = batch.loss_scale;
  given.dropout = batch.dropout;
  return given;
}

layers::MicroBatch Batches::load_static_input(std::size_t chunk, std::size_t slot,
                                              const layers::MicroBatch& batch) const {
  if (!graphs_.made()) return batch;
  const auto given = static_input(chunk, slot, batch);
  device_.copy(batch.tokens, given.tokens);
  device_.copy(batch.targets, given.targets);
  device_.copy(batch.places, given.places);
  if (masks_documents_) device_.copy(batch.first_keys, given.first_keys);
  return given;
}

std::int64_t Batches::counted_tokens() const {
  if (memory_.of(Purpose::batch).is_measuring()) return 1;
  std::int64_t count = 0;
  for (const auto& batch : batches_) {
    const auto* targets = batch.host.targets.i32();
    count +=
        std::count_if(targets, targets + rows_, [](std::int32_t target) { return target >= 0; });
  }
  return count;
}

}  // namespace trireme::engine
