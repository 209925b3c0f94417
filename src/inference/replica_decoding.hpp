// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/inference/decoder.hpp"
#include "trireme/inference/generate.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trireme::inference {

/// A prompt and what follows it.
struct DecodedSequence {
  /// Among all prompts.
  std::int64_t index = 0;
  /// Prompt, then the chosen tokens without the stop token.
  std::vector<std::int32_t> ids;
  std::size_t prompt_size = 0;
  /// Positions whose keys and values are cached.
  std::size_t cached = 0;
  std::optional<Ending> ending;
  /// What was answered so far, where texts may end it.
  std::string answer;
};

/// Tokens that may follow each prompt: as many as were asked for; if nobody asked, 128, or fewer
/// where the model has no positions for them after the longest prompt (one at least).
std::int64_t most_new_tokens(const GenerateRequest& request, const model::ModelConfig& model,
                             const std::vector<DecodedSequence>& prompts);

/// Sets capacity and rows of a step: for the prompts of all replicas of the options' mesh, at most
/// `batch` of them side by side, each with max_tokens more.
void fit_to_prompts(DecoderOptions& options, const std::vector<DecodedSequence>& prompts,
                    std::int64_t batch, std::int64_t max_tokens);

/// What one data-parallel replica decodes with, the same on each of its ranks.
struct DecodingLimits {
  int slots = 1;
  std::int64_t rows_at_once = 1;
  std::int64_t max_tokens = 1;
  /// Tokens that mean something: the tokenizer's, of a vocabulary that may be padded.
  std::int64_t vocabulary = 1;
  std::vector<std::int32_t> stop_tokens;
  /// Adds a token to the answer and says whether a text that ends it is there now; may be null.
  std::function<bool(DecodedSequence&, std::int32_t token)> ends_with = nullptr;
};

/// Decodes sequences of one replica side by side: whenever one ends, the next takes its slot, and
/// prompts are read in the same steps in which others are continued.
class ReplicaDecoding {
 public:
  /// Told each token that is chosen and is not a stop token.
  using Chosen = std::function<void(const DecodedSequence&, std::int32_t token)>;

  ReplicaDecoding(Decoder& decoder, const DecodingLimits& limits, const Sampling& sampling,
                  std::vector<DecodedSequence> sequences, Chosen chosen);

  /// Collective over the replica. Until every sequence has its ending.
  void run();
  const std::vector<DecodedSequence>& sequences() const { return sequences_; }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;

  /// Gives free slots to sequences that wait; false when none is left to decode.
  bool fill_slots();
  /// The rows of the next step: at least one of each sequence that holds a slot.
  void collect();
  void choose(const device::Tensor& logits);
  void take(DecodedSequence& sequence, std::int32_t token);
  DecodedSequence& of(const model::SequencePart& part) {
    return sequences_[holders_[static_cast<std::size_t>(part.slot)]];
  }

  Decoder& decoder_;
  DecodingLimits limits_;
  Sampling sampling_;
  std::vector<DecodedSequence> sequences_;
  Chosen chosen_;
  /// Which sequence holds each slot.
  std::vector<std::size_t> holders_;
  std::size_t next_ = 0;
  std::vector<model::SequencePart> parts_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> next_tokens_;
};

}  // namespace trireme::inference
