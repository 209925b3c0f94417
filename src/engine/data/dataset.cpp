// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/dataset.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace trireme::engine {

base::Result<std::unique_ptr<data::TokenDataset>> open_dataset(const config::Options& keys,
                                                               Split split,
                                                               const model::ModelConfig& model) {
  const bool trains = split == Split::train;
  const auto& given = trains ? keys.data.train : keys.data.validation;
  std::vector<std::string> sources;
  for (const auto& source : given) {
    // Weight of a source without one is 1; datasets require weights for all or none.
    sources.push_back(source.text);
  }
  const bool weighted = std::any_of(given.begin(), given.end(),
                                    [](const auto& source) { return source.weight != 1.0; });
  for (std::size_t index = 0; weighted && index < given.size(); ++index) {
    sources[index] = base::format("{}:{}", sources[index], given[index].weight);
  }
  if (sources.empty()) {
    return base::usage_failure(base::format(
        "data.{} is empty (there is nothing to read); name the prefix of files that `trireme data "
        "prepare` wrote",
        trains ? "train" : "validation"));
  }
  data::DatasetOptions options;
  options.sequence_length = static_cast<std::int32_t>(keys.train.sequence_length);
  options.seed = static_cast<std::uint64_t>(keys.data_seed());
  options.shuffle = trains && keys.data.shuffle;
  options.vocab_size = static_cast<std::int32_t>(model.vocab_size);
  auto dataset = data::TokenDataset::open(sources, options);
  if (!dataset) return dataset.failure();
  return std::make_unique<data::TokenDataset>(std::move(dataset).value());
}

}  // namespace trireme::engine
