// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace trireme::inference {

/// Number of text bytes of each token; 0 for special tokens.
class TextBytes {
 public:
  /// Bytes by the tokenizer of data.tokenizer, else by that of the weights, else none. Fails when
  /// data.tokenizer names something that cannot be read.
  static base::Result<std::optional<TextBytes>> of_weights(const std::filesystem::path& weights,
                                                           const config::Config& config,
                                                           std::int64_t vocab_size);

  /// Sum over all tokens that a pass over a part predicts: all of each sample but its first.
  std::int64_t predicted(const data::TokenDataset& dataset,
                         const data::TokenDataset::Part& part) const;

 private:
  explicit TextBytes(std::vector<std::int64_t> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::int64_t> bytes_;  // [vocabulary]
};

}  // namespace trireme::inference
