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

/// Prompt and its continuation.
struct DecodedSequence {
  /// Index among all prompts.
  std::int64_t index = 0;
  /// Prompt, then the chosen tokens without the stop token.
  std::vector<std::int32_t> ids;
  std::size_t prompt_size = 0;
  /// Positions whose keys and values are cached.
  std::size_t cached = 0;
  std::optional<Ending> ending;
  /// Text of the answer so far; only kept if there are stop texts.
  std::string answer;
};

/// Number of new tokens of each prompt: as requested; by default 128, or fewer where the model has
/// no positions for them after the longest prompt (one at least).
std::int64_t most_new_tokens(const GenerateRequest& request, const model::ModelConfig& model,
                             const std::vector<DecodedSequence>& prompts);

/// Sets capacity and rows of a step: for the prompts of all replicas of the options' mesh, at most
/// `batch` of them side by side, each with max_tokens more.
void fit_to_prompts(DecoderOptions& options, const std::vector<DecodedSequence>& prompts,
                    std::int64_t batch, std::int64_t max_tokens);

/// Limits of one data-parallel replica, the same on each of its ranks.
struct DecodingLimits {
  int slots = 1;
  std::int64_t rows_at_once = 1;
  std::int64_t max_tokens = 1;
  /// Number of valid tokens: the tokenizer's, of a vocabulary that may be padded.
  std::int64_t vocabulary = 1;
  std::vector<std::int32_t> stop_tokens;
  /// Adds a token to the answer; true if a stop text is complete. May be null.
  std::function<bool(DecodedSequence&, std::int32_t token)> ends_with = nullptr;
  /// Ranks of other replicas that gather weights together with this one for each step, so that all
  /// take as many steps as the longest; null where each has its weights whole.
  comm::ProcessGroup* together = nullptr;
};

/// Decodes sequences of one replica side by side: the next one takes the slot of one that ends, and
/// prompts are read in the same steps in which others are continued.
class ReplicaDecoding {
 public:
  /// Called with each chosen token that is not a stop token.
  using Chosen = std::function<void(const DecodedSequence&, std::int32_t token)>;

  ReplicaDecoding(Decoder& decoder, const DecodingLimits& limits, const Sampling& sampling,
                  std::vector<DecodedSequence> sequences, Chosen chosen);

  /// Collective over the replica, and over limits.together. Runs until every sequence has its
  /// ending.
  void run();
  const std::vector<DecodedSequence>& sequences() const { return sequences_; }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;

  /// Gives free slots to sequences that wait; false when none is left to decode.
  bool fill_slots();
  /// Whether there is a next step, if this replica has anything left for it or not.
  bool goes_on(bool has_any) const;
  /// The rows of the next step: at least one of each sequence that holds a slot.
  void collect();
  void choose(const device::Tensor& logits);
  void take(DecodedSequence& sequence, std::int32_t token);
  DecodedSequence& of(const layers::SequencePart& part) {
    return sequences_[holders_[static_cast<std::size_t>(part.slot)]];
  }

  Decoder& decoder_;
  DecodingLimits limits_;
  Sampling sampling_;
  std::vector<DecodedSequence> sequences_;
  Chosen chosen_;
  /// Sequence in each slot.
  std::vector<std::size_t> holders_;
  std::size_t next_ = 0;
  std::vector<layers::SequencePart> parts_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> next_tokens_;
};

}  // namespace trireme::inference
