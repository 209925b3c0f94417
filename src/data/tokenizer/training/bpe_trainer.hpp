// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/tokenizer/training/word_counts.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trireme::data {

/// Trains merges from counted words. Ids of tokens: `first_bytes` (256 of them, in the order of
/// their byte-level characters) begin at `first_id`, merges follow.
class BpeTrainer {
 public:
  /// `counts` must outlive the trainer.
  BpeTrainer(const WordCounts& counts, std::int32_t first_id);

  /// Merges until there are `vocab_size` ids or no pair occurs `min_frequency` times.
  void train(std::int32_t vocab_size, std::int64_t min_frequency);

  /// Byte-level text of the tokens from `first_id` on, and the merges in their order.
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<std::pair<std::string, std::string>>& merges() const { return merges_; }

 private:
  using Pair = std::pair<std::int32_t, std::int32_t>;
  struct Occurrences {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  ///< words that may contain it, each about once
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const;
  };
  struct Candidate {
    std::int64_t count;
    Pair pair;
    /// The order of a heap whose top is the most frequent pair, the lowest ids first.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  struct Word {
    std::size_t begin;  ///< in symbols_
    std::uint32_t size;
    std::int64_t count;
  };

  void add_bytes();
  void add_words(const WordCounts& counts);
  void change(Pair pair, std::int64_t by, std::uint32_t word);
  std::int32_t token_of(Pair pair);
  void merge(Pair pair, std::int32_t token);
  void merge_in(std::uint32_t word, Pair pair, std::int32_t token);

  std::int32_t first_id_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::vector<std::int32_t> symbols_;
  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::vector<Candidate> heap_;
  std::vector<Pair> grown_;  ///< pairs that became more frequent by the current merge
};

}  // namespace trireme::data
