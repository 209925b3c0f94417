// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::data {

/// How often a run sees its data: in epochs, each of which has every sample once.
struct Exposure {
  struct Source {
    std::string prefix;
    std::int64_t samples = 0;
    std::int64_t tokens = 0;
    /// Part of the samples drawn: of the weights, or without them of the samples there are.
    double share = 1;
    double epochs = 0;
  };
  /// Tokens that a sample predicts.
  std::int32_t sequence_length = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  /// Epochs over all sources together.
  double epochs = 0;
  std::vector<Source> sources;
};

/// Exposure to the first `drawn` samples of the series.
Exposure exposure_of(const TokenDataset& dataset, std::uint64_t drawn);

/// "2 samples of 128 tokens, seen 160 times in 80 steps of 4"; several sources follow, each with
/// its share.
std::string text(const Exposure& exposure, std::int64_t steps, std::int64_t batch);

/// Why a batch of so many samples holds one of them twice, as a warning; empty where it does not.
std::string repeats_in_batch(const TokenDataset& dataset, std::int64_t batch);

}  // namespace trireme::data
