// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/batch_loader.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using layout::Axis;

namespace {

std::int64_t sequences_of_rank(const EngineOptions& options) {
  return options.schedule.micro_batches * options.schedule.micro_batch;
}

}  // namespace

std::int64_t global_batch(const EngineOptions& options) {
  return sequences_of_rank(options) * options.sharding.mesh.degree(Axis::data);
}

BatchLoader::BatchLoader(const data::TokenDataset& dataset, Engine& engine, SampleOrder order)
    : dataset_(dataset), engine_(engine), order_(order), parts_(engine.sample_parts()) {}

void BatchLoader::read_sample(std::uint64_t number, std::uint64_t end,
                              std::span<std::int32_t> sample) const {
  if (order_ == SampleOrder::drawn) return dataset_.sample(number, sample);
  // Samples beyond are not counted, and need not be there.
  dataset_.sample_of_pass(std::min(number, end - 1), sample);
}

void BatchLoader::read(std::uint64_t cursor, std::uint64_t end, StepSamples& samples) const {
  const auto& options = engine_.options();
  const auto seq = options.schedule.sequence_length;
  const auto sequences = sequences_of_rank(options);
  const auto elements = static_cast<std::size_t>(sequences * seq);
  samples.first =
      cursor + static_cast<std::uint64_t>(
                   options.sharding.mesh.coordinate(Axis::data, options.sharding.rank) * sequences);
  const auto batch = static_cast<std::uint64_t>(global_batch(options));
  samples.counted = static_cast<std::int64_t>(std::min(batch, end - cursor)) * seq;
  samples.tokens.resize(parts_.tokens ? elements : 0);
  samples.targets.resize(parts_.targets ? elements : 0);
  if (!parts_.tokens && !parts_.targets) return;
  std::vector<std::int32_t> sample(static_cast<std::size_t>(seq) + 1);
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    const auto number = samples.first + static_cast<std::uint64_t>(sequence);
    read_sample(number, end, sample);
    if (parts_.tokens) std::copy_n(sample.begin(), seq, samples.tokens.begin() + sequence * seq);
    if (!parts_.targets) continue;
    const auto targets = samples.targets.begin() + sequence * seq;
    if (number < end) {
      std::copy_n(sample.begin() + 1, seq, targets);
    } else {
      std::fill_n(targets, seq, -1);
    }
  }
}

void BatchLoader::put(const StepSamples& samples) const {
  const auto& schedule = engine_.options().schedule;
  const auto rows = schedule.micro_batch * schedule.sequence_length;
  for (int index = 0; index < schedule.micro_batches; ++index) {
    auto& batch = engine_.batch(index);
    batch.first_sequence = static_cast<std::int64_t>(samples.first) + index * schedule.micro_batch;
    const auto put_part = [&](const std::vector<std::int32_t>& part, const device::Tensor& to) {
      if (!part.empty()) std::copy_n(part.begin() + index * rows, rows, to.i32());
    };
    put_part(samples.tokens, batch.tokens);
    put_part(samples.targets, batch.targets);
  }
  engine_.expect_tokens(samples.counted);
}

void BatchLoader::fill(std::uint64_t cursor, std::uint64_t end) {
  read(cursor, end, samples_);
  put(samples_);
}

void ReadAhead::start(std::uint64_t cursor) {
  under_way_ = {};
  cursor_ = cursor;
  under_way_ =
      std::async(std::launch::async, [this, cursor, samples = std::move(spare_)]() mutable {
        loader_.read(cursor, UINT64_MAX, samples);
        return std::move(samples);
      });
}

void ReadAhead::fill(std::uint64_t cursor) {
  if (under_way_.valid() && cursor_ == cursor) {
    spare_ = under_way_.get();
    return loader_.put(spare_);
  }
  under_way_ = {};
  loader_.fill(cursor);
}

}  // namespace trireme::engine
