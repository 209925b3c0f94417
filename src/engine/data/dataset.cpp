// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/dataset.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace trireme::engine {
namespace {

const char* key_of(Split split) {
  return split == Split::train ? "data.train" : "data.validation";
}

/// Rule for files whose documents a mask keeps apart.
base::Status check_documents(const data::TokenDataset& dataset, const char* key) {
  for (const auto& source : dataset.sources()) {
    if (source.file_format() == data::TokenFormat::megatron) continue;
    return base::usage_failure(base::format(
        "train.document_mask = true but '{}' of {} has llm.c's format (it does not say where "
        "documents begin); prepare the text with `trireme data prepare`, or set "
        "train.document_mask = false",
        source.path().string(), key));
  }
  return {};
}

}  // namespace

base::Result<data::TokenDataset> open_dataset_alone(const config::Options& keys, Split split,
                                                    const model::ModelConfig& model,
                                                    data::FileCheck check) {
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
        "{} is empty (there is nothing to read); name the prefix of files that `trireme data "
        "prepare` wrote",
        key_of(split)));
  }
  data::DatasetOptions options;
  options.sequence_length = static_cast<std::int32_t>(keys.train.sequence_length);
  options.seed = static_cast<std::uint64_t>(keys.data_seed());
  options.shuffle = trains && keys.data.shuffle;
  options.vocab_size = static_cast<std::int32_t>(model.vocab_size);
  auto dataset = data::TokenDataset::open(sources, options, check);
  if (!dataset || !keys.train.document_mask) return dataset;
  if (auto status = check_documents(*dataset, key_of(split)); !status) return status.failure();
  return dataset;
}

std::unique_ptr<data::TokenDataset> open_dataset(const config::Options& keys, Split split,
                                                 const model::ModelConfig& model,
                                                 comm::ProcessGroup& world) {
  // Samples need no more of an index than its sizes, and sample() checks every id.
  const auto check = world.rank() == 0 ? data::FileCheck::whole : data::FileCheck::sizes;
  auto dataset = comm::agree(world, open_dataset_alone(keys, split, model, check));
  comm::agree_equal(world, dataset.outline(), key_of(split),
                    "give every node the same token files");
  return std::make_unique<data::TokenDataset>(std::move(dataset));
}

std::uint64_t agreed_fingerprint(const data::TokenDataset& dataset, comm::ProcessGroup& world) {
  std::string bytes;
  comm::agree_after(world, [&] {
    if (world.rank() != 0) return;
    const auto mine = dataset.fingerprint();
    bytes.assign(reinterpret_cast<const char*>(&mine), sizeof mine);
  });
  bytes = comm::broadcast_bytes(world, bytes);
  std::uint64_t fingerprint = 0;
  TRIREME_EXPECT(bytes.size() == sizeof fingerprint, "the first rank has sent a number");
  std::memcpy(&fingerprint, bytes.data(), sizeof fingerprint);
  return fingerprint;
}

}  // namespace trireme::engine
