// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer.hpp"
#include "trireme/inference/generate.hpp"

#include "replica_decoding.hpp"
#include "stop_texts.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Prompts on their way to the replicas that decode them, and back as answers.
namespace trireme::inference {

/// Tokens of prompts. Refuses a prompt without a token, and tokens that the model does not have;
/// `tokenizer_option` is what names another tokenizer.
base::Result<std::vector<DecodedSequence>> encode_prompts(const std::vector<std::string>& prompts,
                                                          const data::Tokenizer& tokenizer,
                                                          const model::ModelConfig& model,
                                                          std::string_view tokenizer_option);

/// Share of a data-parallel replica: every n-th prompt.
std::vector<DecodedSequence> share_of(const std::vector<DecodedSequence>& all,
                                      const comm::ProcessGroup& data);

/// Collective over the data-parallel group: the ends of all sequences, in the order of the prompts.
std::vector<DecodedSequence> gather(std::vector<DecodedSequence> all,
                                    const std::vector<DecodedSequence>& mine,
                                    std::int64_t max_tokens, comm::ProcessGroup& data);

Answer answer_of(const DecodedSequence& sequence, const data::Tokenizer& tokenizer,
                 const StopTexts& stops);

}  // namespace trireme::inference
