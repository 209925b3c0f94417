// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/training/word_counts.hpp"

#include "trireme/base/contract.hpp"

#include "data/tokenizer/hash.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace trireme::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;
constexpr std::size_t first_slots = std::size_t{1} << 12;

}  // namespace

WordCounts::WordCounts() : slots_(first_slots) {}

void WordCounts::add(std::string_view word, std::int64_t count) {
  const auto hash = hash_bytes(word);
  const auto mask = slots_.size() - 1;
  for (auto slot = static_cast<std::size_t>(hash) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      TRIREME_EXPECT(entries_.size() < std::numeric_limits<std::uint32_t>::max(),
                     "fewer than 2^32 distinct words");
      entries_.push_back({keep(word), hash, count});
      slots_[slot] = static_cast<std::uint32_t>(entries_.size());
      if (2 * entries_.size() > slots_.size()) grow();
      return;
    }
    auto& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && entry.word == word) {
      entry.count += count;
      return;
    }
  }
}

std::string_view WordCounts::keep(std::string_view word) {
  if (word.size() > free_bytes_) {
    free_bytes_ = std::max(block_bytes, word.size());
    blocks_.push_back(std::make_unique<char[]>(free_bytes_));
    free_ = blocks_.back().get();
  }
  std::memcpy(free_, word.data(), word.size());
  const std::string_view kept(free_, word.size());
  free_ += word.size();
  free_bytes_ -= word.size();
  return kept;
}

void WordCounts::grow() {
  std::vector<std::uint32_t> slots(2 * slots_.size());
  const auto mask = slots.size() - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    auto slot = static_cast<std::size_t>(entries_[i].hash) & mask;
    while (slots[slot] != 0) slot = (slot + 1) & mask;
    slots[slot] = i + 1;
  }
  slots_ = std::move(slots);
}

}  // namespace trireme::data
