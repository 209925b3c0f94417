// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/config/config.hpp"
#include "trireme/runtime/session.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace trireme::inference {

/// Equally long lists of token ids.
struct TokenLists {
  std::int64_t batch = 0;
  std::int64_t sequence_length = 0;
  std::vector<std::int32_t> ids;  // [batch, sequence_length]
};

/// Lists of tokens from JSON that people wrote. Refuses, with the place: anything but equally long
/// lists of whole numbers below vocab_size. Lists of one token are valid: they have logits, though
/// their loss is the mean of no numbers (NaN, with gradients of zero, as in transformers).
base::Result<TokenLists> token_lists(const base::Json& json, std::int64_t vocab_size,
                                     std::string_view source);

struct ProbeRequest {
  std::filesystem::path weights;
  std::filesystem::path tokens;
  std::filesystem::path out;
  bool with_gradients = false;
};

/// Collective over all ranks. Writes the model's results for the tokens, for comparison with other
/// software: `logits` f32 [batch, seq, vocab], `loss` f32 [1] (mean cross-entropy of each next
/// token) and, if requested, `grad/<Hugging Face name>` of every parameter as Hugging Face stores
/// it. Sections parallel and numerics of the configuration select the computation; dropout is off.
/// Users' mistakes end on all ranks with one text.
void probe(const ProbeRequest& request, const config::Config& config, runtime::Session& session);

}  // namespace trireme::inference
