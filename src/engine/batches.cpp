// The tokens of a step: where the host puts them and where kernels find them.
#include "host_sum.hpp"
#include "parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace trireme::engine {

using device::Purpose;

namespace {

/// Of model::MicroBatch::places.
constexpr std::int64_t words_of_places = 4;

}  // namespace

void Engine::Parts::make_batches() {
  auto& arena = memory.of(Purpose::batch);
  auto* staging = memory.batch_staging();
  const auto allocate = [rows = context.rows()](device::Arena& from) {
    return TokenBuffers{from.allocate(device::DType::i32, {rows}),
                        from.allocate(device::DType::i32, {rows})};
  };
  for (int index = 0; index < options.micro_batches; ++index) {
    const auto there = allocate(arena);
    device_batches.push_back({there.tokens, there.targets});
    batches.push_back(staging != nullptr ? allocate(*staging) : there);
  }
  if (may_record()) make_standing_batches();
}

void Engine::Parts::make_standing_batches() {
  auto& arena = memory.of(Purpose::batch);
  auto* staging = memory.batch_staging();
  const auto places_in = [](device::Arena& from) {
    return from.allocate(device::DType::i32, {words_of_places});
  };
  for (auto& batch : device_batches) {
    batch.places = places_in(arena);
    places.push_back(staging != nullptr ? places_in(*staging) : batch.places);
  }
  for (const int count : slots) {
    auto& of_chunk = standing.emplace_back();
    for (int slot = 0; slot < count; ++slot) {
      model::MicroBatch batch{arena.allocate(device::DType::i32, {context.rows()}),
                              arena.allocate(device::DType::i32, {context.rows()})};
      batch.places = places_in(arena);
      of_chunk.push_back(batch);
    }
  }
}

void Engine::Parts::upload_batches() {
  if (memory.batch_staging() == nullptr) return;
  auto& device = kernels.device();
  uploaded.wait();
  for (std::size_t index = 0; index < batches.size(); ++index) {
    if (records()) {
      const auto sequence = batches[index].first_sequence;
      const std::array<std::int64_t, 2> numbers{sequence, sequence * options.sequence_length};
      std::memcpy(places[index].i32(), numbers.data(), sizeof numbers);
      device.copy_in(places[index].raw(), device_batches[index].places);
    }
    device.copy_in(batches[index].tokens.raw(), device_batches[index].tokens);
    device.copy_in(batches[index].targets.raw(), device_batches[index].targets);
  }
  uploaded = device.record();
}

model::MicroBatch Engine::Parts::training_batch(int index, float loss_scale) const {
  auto batch = evaluation_batch(index);
  batch.loss_scale = loss_scale;
  batch.dropout = options.model.dropout;
  return batch;
}

model::MicroBatch Engine::Parts::evaluation_batch(int index) const {
  auto batch = device_batches[static_cast<std::size_t>(index)];
  if (!records()) {
    batch.first_sequence = batches[static_cast<std::size_t>(index)].first_sequence;
    batch.places = {};
  }
  return batch;
}

/// Targets of all data-parallel ranks that are not left out.
std::int64_t Engine::Parts::counted_tokens() {
  double count = 0;
  if (memory.of(Purpose::batch).is_measuring()) return 1;
  for (const auto& batch : batches) {
    const auto* targets = batch.targets.i32();
    count += static_cast<double>(std::count_if(targets, targets + context.rows(),
                                               [](std::int32_t target) { return target >= 0; }));
  }
  ordered_sum(*groups.data, {&count, 1});
  return static_cast<std::int64_t>(count);
}

}  // namespace trireme::engine
