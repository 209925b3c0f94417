// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/runtime/session.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace trireme::inference {

/// Loss on one source of held-out tokens.
struct SourceLoss {
  std::string source;
  double share = 0;  ///< of all weights
  std::int64_t tokens = 0;
  double loss = 0;  ///< mean of a token, in nats
  /// Bytes of text of those tokens, where they are known.
  std::optional<std::int64_t> bytes = {};
};

struct HeldOutLoss {
  /// Mean cross-entropy of a token, in nats; of a weighted blend the weighted mean of its sources'.
  double loss = 0;
  /// Tokens that were predicted.
  std::int64_t tokens = 0;
  /// Samples that were evaluated, of so many.
  std::int64_t sequences = 0;
  std::int64_t all_sequences = 0;
  /// Losses of each source, of a whole pass over a weighted blend.
  std::vector<SourceLoss> sources = {};
};

/// Collective over all ranks. Loss of the first `batches` global batches of a dataset, each sample
/// once: what does not fill the last batch is left out of the sum. Where these are all samples,
/// each source is taken once and in whole, and weights count for their means alone; where they are
/// not, a blend draws as it does for training.
HeldOutLoss evaluate(const data::TokenDataset& dataset, engine::Engine& engine,
                     std::int64_t batches = std::numeric_limits<std::int64_t>::max());

/// Evaluation that ends early, with no result, when `goes_on` (called between batches, with the
/// same result on all ranks) returns false.
std::optional<HeldOutLoss> evaluate_while(const data::TokenDataset& dataset, engine::Engine& engine,
                                          std::int64_t batches,
                                          const std::function<bool()>& goes_on);

/// Result of weights on held-out tokens.
struct Evaluation {
  std::filesystem::path weights;
  /// Step of the checkpoint; none for a Hugging Face folder.
  std::optional<std::int64_t> step;
  std::int64_t sequences = 0;
  std::int64_t sequence_length = 0;
  /// Tokens that were predicted, each from those before it in its sequence.
  std::int64_t tokens = 0;
  /// Mean cross-entropy of a token, in nats.
  double loss = 0;
  /// Bytes of text of those tokens; nothing without a tokenizer. Ends of documents have none,
  /// though their bits are counted.
  std::optional<std::int64_t> bytes;
  double seconds = 0;
  /// Losses of each source of a weighted blend: the loss is the weighted mean of theirs.
  std::vector<SourceLoss> sources = {};
  /// Sequences that the run's own evaluations take, where these are not all (train.eval_batches).
  std::optional<std::int64_t> sequences_of_run = {};

  double perplexity() const;
  std::optional<double> bits_per_byte() const;
};
base::Json to_json(const Evaluation& evaluation);
std::string text(const Evaluation& evaluation);

/// Collective over all ranks. Evaluates `weights` (a checkpoint step, a run, a Hugging Face folder;
/// empty: the newest step of run.directory, else what checkpoint.load names) on all samples of
/// data.validation, in sequences of train.sequence_length; what the configuration does not give of
/// these, and of micro-batch and precision, is as the run had it. The numbers depend on the layout
/// only by rounding. Throws AgreedError (checkpoint) when there are no weights or no such data.
Evaluation evaluate_weights(const std::filesystem::path& weights, const config::Config& config,
                            runtime::Session& session);

}  // namespace trireme::inference
