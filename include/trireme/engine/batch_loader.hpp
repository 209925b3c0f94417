// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"

#include <cstdint>
#include <vector>

namespace trireme::engine {

/// Numbers of a dataset's samples: as training draws them (TokenDataset::sample), or of a whole
/// pass (TokenDataset::sample_of_pass).
enum class SampleOrder { drawn, whole_pass };

/// Puts samples of a dataset into the micro-batches of an engine. Sample `cursor + i` of a step
/// goes to the same place of the global batch whatever the layout.
class BatchLoader {
 public:
  explicit BatchLoader(const data::TokenDataset& dataset, SampleOrder order = SampleOrder::drawn)
      : dataset_(dataset), order_(order) {}

  /// Fills every micro-batch of this rank; `cursor` is the number of the step's first sample.
  /// Samples beyond `end` are left out of the loss (targets below zero).
  void fill(Engine& engine, std::uint64_t cursor, std::uint64_t end = UINT64_MAX) const;

 private:
  const data::TokenDataset& dataset_;
  SampleOrder order_;
};

/// Samples of a step, over all data-parallel ranks.
std::int64_t global_batch(const EngineOptions& options);

}  // namespace trireme::engine
