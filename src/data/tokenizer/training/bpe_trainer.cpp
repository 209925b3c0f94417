// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/training/bpe_trainer.hpp"

#include "trireme/base/utf8.hpp"

#include "data/tokenizer/hash.hpp"
#include "data/tokenizer/text/unicode.hpp"

#include <algorithm>
#include <array>

namespace trireme::data {

std::size_t BpeTrainer::PairHash::operator()(const Pair& pair) const {
  return static_cast<std::size_t>(
      mix(static_cast<std::uint32_t>(pair.first), static_cast<std::uint64_t>(pair.second)));
}

BpeTrainer::BpeTrainer(const WordCounts& counts, std::int32_t first_id) : first_id_(first_id) {
  add_bytes();
  add_words(counts);
}

void BpeTrainer::add_bytes() {
  std::vector<char32_t> characters;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters.push_back(byte_to_character(static_cast<unsigned char>(byte)));
  }
  std::sort(characters.begin(), characters.end());
  for (const auto character : characters) {
    std::string text;
    base::append_utf8(text, character);
    ids_.emplace(text, first_id_ + static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(std::move(text));
  }
}

void BpeTrainer::add_words(const WordCounts& counts) {
  std::array<std::int32_t, 256> id_of_byte{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string text;
    base::append_utf8(text, byte_to_character(static_cast<unsigned char>(byte)));
    id_of_byte[byte] = ids_.at(text);
  }
  for (const auto& entry : counts.entries()) {
    const auto index = static_cast<std::uint32_t>(words_.size());
    const auto begin = symbols_.size();
    for (const char byte : entry.word) {
      symbols_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
    }
    words_.push_back({begin, static_cast<std::uint32_t>(entry.word.size()), entry.count});
    for (auto at = begin; at + 1 < symbols_.size(); ++at) {
      change({symbols_[at], symbols_[at + 1]}, entry.count, index);
    }
  }
  grown_.clear();
}

void BpeTrainer::change(Pair pair, std::int64_t by, std::uint32_t word) {
  auto& occurrences = pairs_[pair];
  occurrences.count += by;
  if (by < 0) return;
  if (occurrences.words.empty() || occurrences.words.back() != word) {
    occurrences.words.push_back(word);
  }
  grown_.push_back(pair);
}

/// Id of the pair's text: a new one, unless another merge has produced the same text before.
std::int32_t BpeTrainer::token_of(Pair pair) {
  const auto& left = tokens_[static_cast<std::size_t>(pair.first - first_id_)];
  const auto& right = tokens_[static_cast<std::size_t>(pair.second - first_id_)];
  merges_.emplace_back(left, right);
  auto text = left + right;
  const auto next = first_id_ + static_cast<std::int32_t>(tokens_.size());
  const auto [found, added] = ids_.emplace(text, next);
  if (added) tokens_.push_back(std::move(text));
  return found->second;
}

void BpeTrainer::train(std::int32_t vocab_size, std::int64_t min_frequency) {
  for (const auto& [pair, occurrences] : pairs_) heap_.push_back({occurrences.count, pair});
  std::make_heap(heap_.begin(), heap_.end());
  while (first_id_ + static_cast<std::int32_t>(tokens_.size()) < vocab_size && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    auto best = heap_.back();
    heap_.pop_back();
    const auto count = pairs_.at(best.pair).count;
    // Counts in the heap may be out of date; a pair that grew stands there with its new count too.
    if (best.count != count) {
      if (count <= 0 || count > best.count) continue;
      heap_.push_back({count, best.pair});
      std::push_heap(heap_.begin(), heap_.end());
      continue;
    }
    if (count < std::max<std::int64_t>(min_frequency, 1)) break;
    merge(best.pair, token_of(best.pair));
  }
}

void BpeTrainer::merge(Pair pair, std::int32_t token) {
  grown_.clear();
  const auto words = std::move(pairs_.at(pair).words);
  for (const auto word : words) merge_in(word, pair, token);
  // Every occurrence is merged, or overlapped with a merged neighbour ("aaa").
  auto& merged = pairs_.at(pair);
  merged.count = 0;
  merged.words.clear();
  std::sort(grown_.begin(), grown_.end());
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const auto& grown : grown_) {
    const auto count = pairs_.at(grown).count;
    if (count <= 0) continue;
    heap_.push_back({count, grown});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

void BpeTrainer::merge_in(std::uint32_t index, Pair pair, std::int32_t token) {
  auto& word = words_[index];
  auto* symbols = symbols_.data() + word.begin;
  std::uint32_t kept = 0;
  for (std::uint32_t at = 0; at < word.size; ++at, ++kept) {
    if (at + 1 == word.size || symbols[at] != pair.first || symbols[at + 1] != pair.second) {
      symbols[kept] = symbols[at];
      continue;
    }
    if (kept > 0) {
      change({symbols[kept - 1], pair.first}, -word.count, index);
      change({symbols[kept - 1], token}, word.count, index);
    }
    if (at + 2 < word.size) {
      change({pair.second, symbols[at + 2]}, -word.count, index);
      change({token, symbols[at + 2]}, word.count, index);
    }
    symbols[kept] = token;
    ++at;
  }
  word.size = kept;
}

}  // namespace trireme::data
