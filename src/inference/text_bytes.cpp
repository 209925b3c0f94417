// SPDX-License-Identifier: Apache-2.0
#include "text_bytes.hpp"

#include "trireme/base/log.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/huggingface/weights.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::inference {

namespace fs = std::filesystem;

base::Result<std::optional<TextBytes>> TextBytes::of_weights(const fs::path& weights,
                                                             const config::Config& config,
                                                             std::int64_t vocab_size) {
  const bool asked = !config.options().data.tokenizer.empty();
  const auto path = huggingface::tokenizer_for(config, weights);
  if (path.empty()) return std::optional<TextBytes>{};
  const auto tokenizer = data::Tokenizer::load(path, data::DeclaredEnds::ignore);
  if (!tokenizer) {
    if (asked) return tokenizer.failure();
    base::log::warning("eval", "no bits per byte: {}", tokenizer.failure().text);
    return std::optional<TextBytes>{};
  }
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(vocab_size), 0);
  for (std::int64_t id = 0; id < std::min<std::int64_t>(vocab_size, tokenizer->vocab_size());
       ++id) {
    const auto token = static_cast<std::int32_t>(id);
    bytes[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(
        tokenizer->decode_bytes({&token, 1}, data::SpecialTokens::skip).size());
  }
  return std::optional<TextBytes>(TextBytes(std::move(bytes)));
}

std::int64_t TextBytes::predicted(const data::TokenDataset& dataset,
                                  const data::TokenDataset::Part& part) const {
  std::vector<std::int32_t> sample(static_cast<std::size_t>(dataset.sequence_length()) + 1);
  std::int64_t sum = 0;
  for (auto number = part.begin; number < part.end; ++number) {
    dataset.sample_of_pass(number, sample);
    sum = std::accumulate(sample.begin() + 1, sample.end(), sum,
                          [this](std::int64_t so_far, std::int32_t id) {
                            return so_far + bytes_[static_cast<std::size_t>(id)];
                          });
  }
  return sum;
}

}  // namespace trireme::inference
