// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/blend.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::data {

struct DatasetOptions {
  /// Tokens that a sample predicts; a sample has one more.
  std::int32_t sequence_length = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;
  /// Upper limit of ids (model.vocab_size); 0 without a model.
  std::int32_t vocab_size = 0;
};

/// Token files as one endless series of samples, whose order is a pure function of (seed, epoch,
/// global sample index): the same for every number of ranks, and the position of training is one
/// 64-bit number. The order is computed, not stored; finding any sample takes the same time.
///
/// Sample s of a source is its tokens [s * sequence_length, (s + 1) * sequence_length + 1): the
/// last token is the next sample's first, so that every token but the first is predicted once an
/// epoch. Documents follow each other as they were prepared, each ended by its end-of-text token.
/// The last tokens that do not fill a sample are left out.
///
/// Sources without weights are one concatenated stream, permuted as a whole each epoch. With
/// weights ("path:0.3"), Blend gives the source of global sample g and the number of its earlier
/// draws, and each source has epochs of its own.
class TokenDataset {
 public:
  /// `sources` are paths as IndexedTokens::open takes them, either all or none followed by
  /// ":weight" (a decimal number above zero; proportions count, at most nine decimals).
  static base::Result<TokenDataset> open(const std::vector<std::string>& sources,
                                         const DatasetOptions& options,
                                         FileCheck check = FileCheck::whole);

  /// Samples of an epoch: of all sources together.
  std::int64_t sample_count() const { return sample_count_; }
  /// Tokens of all sources together.
  std::int64_t token_count() const;
  /// Samples of one source.
  std::int64_t sample_count(std::size_t source) const;
  bool is_weighted() const { return blend_.has_value(); }
  std::uint64_t epoch_of(std::uint64_t global_index) const;
  /// How often the data are seen after `drawn` samples: with weights the mean over all samples.
  double epochs(std::uint64_t drawn) const;
  /// [sources] with weights, else empty: those of the first `drawn` samples that each has given.
  std::vector<std::uint64_t> draws(std::uint64_t drawn) const;
  std::int32_t sequence_length() const { return options_.sequence_length; }

  /// Origin of a sample.
  struct Place {
    std::size_t source = 0;
    std::int64_t begin = 0;  ///< first token in that source's stream
    bool operator==(const Place&) const = default;
  };
  Place place(std::uint64_t global_index) const;

  /// Fills tokens (sequence_length + 1 of them). Inputs are all but the last, targets all but the
  /// first. Throws base::Error (exit code 6) that names file and position of an id that the
  /// vocabulary does not have. May be called from several threads.
  void sample(std::uint64_t global_index, std::span<std::int32_t> tokens) const;

  /// A run of samples that a whole pass takes together, in its own numbers: [begin, end).
  struct Part {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double share = 1;  ///< of all weights
  };
  /// With weights each source, else all samples together.
  std::vector<Part> parts() const;
  /// sample() in the order of a whole pass: each source after the other, its samples once and in
  /// order, whatever weights and shuffling say. `number` is below sample_count().
  void sample_of_pass(std::uint64_t number, std::span<std::int32_t> tokens) const;

  /// For each input of a sample (sequence_length of them), of sample() or of sample_of_pass():
  /// IndexedTokens::document_starts().
  void document_starts(std::uint64_t global_index, std::span<std::int32_t> starts) const;
  void document_starts_of_pass(std::uint64_t number, std::span<std::int32_t> starts) const;

  /// Equal when sample() gives the same for every index: content of the sources, weights, sequence
  /// length, seed and shuffling. A cursor is worth nothing at another fingerprint. Reads thousands
  /// of blocks of each source: once a start, and not on every rank.
  std::uint64_t fingerprint() const;
  /// The same without the content: what place() depends on. Reads nothing.
  std::uint64_t outline() const;

  const std::vector<IndexedTokens>& sources() const { return sources_; }

 private:
  TokenDataset() = default;
  std::uint64_t hash_of_order() const;
  Place place_of_sample(std::int64_t sample) const;
  void read(const Place& place, std::span<std::int32_t> tokens) const;
  Place place_of_pass(std::uint64_t number) const;

  DatasetOptions options_;
  std::vector<IndexedTokens> sources_;
  std::vector<std::uint64_t> weights_;      // [sources], empty when concatenated
  std::vector<std::int64_t> first_sample_;  // [sources + 1], sums of the sources' samples
  std::optional<Blend> blend_;
  std::int64_t sample_count_ = 0;
};

}  // namespace trireme::data
