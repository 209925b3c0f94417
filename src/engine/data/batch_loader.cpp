// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/batch_loader.hpp"

#include <algorithm>

namespace trireme::engine {

using layout::Axis;

std::int64_t global_batch(const EngineOptions& options) {
  return options.schedule.micro_batches * options.schedule.micro_batch *
         options.sharding.mesh.degree(Axis::data);
}

void BatchLoader::fill(Engine& engine, std::uint64_t cursor, std::uint64_t end) const {
  const auto& options = engine.options();
  const auto seq = options.schedule.sequence_length;
  const auto of_rank = options.schedule.micro_batches * options.schedule.micro_batch;
  const auto first =
      cursor + static_cast<std::uint64_t>(
                   options.sharding.mesh.coordinate(Axis::data, options.sharding.rank) * of_rank);
  std::vector<std::int32_t> sample(static_cast<std::size_t>(seq) + 1);
  for (int index = 0; index < options.schedule.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    const auto begin = first + static_cast<std::uint64_t>(index * options.schedule.micro_batch);
    batch.first_sequence = static_cast<std::int64_t>(begin);
    for (std::int64_t sequence = 0; sequence < options.schedule.micro_batch; ++sequence) {
      const auto global = begin + static_cast<std::uint64_t>(sequence);
      if (order_ == SampleOrder::drawn) {
        dataset_.sample(global, sample);
      } else {
        // Samples beyond are not counted, and need not be there.
        dataset_.sample_of_pass(std::min(global, end - 1), sample);
      }
      std::copy_n(sample.begin(), seq, batch.tokens.i32() + sequence * seq);
      auto* targets = batch.targets.i32() + sequence * seq;
      if (global < end) {
        std::copy_n(sample.begin() + 1, seq, targets);
      } else {
        std::fill_n(targets, seq, -1);
      }
    }
  }
}

}  // namespace trireme::engine
