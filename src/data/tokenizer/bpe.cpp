// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/bpe.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace trireme::data {
namespace {

/// Place of a word in the cache; affects only speed.
std::size_t place_of(std::string_view word) {
  std::uint64_t hash = word.size() * 0x9E3779B97F4A7C15ULL;
  std::size_t at = 0;
  for (; at + 8 <= word.size(); at += 8) {
    std::uint64_t part;
    std::memcpy(&part, word.data() + at, sizeof part);
    hash = std::rotl((hash ^ part) * 0xBF58476D1CE4E5B9ULL, 29);
  }
  std::uint64_t part = 0;
  std::memcpy(&part, word.data() + at, word.size() - at);
  hash = (hash ^ part) * 0x94D049BB133111EBULL;
  return static_cast<std::size_t>(hash >> 40);
}

}  // namespace

void MergeTable::reserve(std::size_t merges) {
  const auto capacity = std::bit_ceil(2 * merges + 1);
  entries_.assign(capacity, Entry{});
  mask_ = capacity - 1;
  shift_ = 64 - std::max(1, std::countr_zero(capacity));
}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  auto slot = slot_of(left, right);
  while (entries_[slot].left >= 0 &&
         (entries_[slot].left != left || entries_[slot].right != right)) {
    slot = (slot + 1) & mask_;
  }
  entries_[slot] = {left, right, merge};
}

WordEncoder::WordEncoder(const BpeModel& model) : model_(model), cache_(cache_entries) {}

void WordEncoder::encode(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() > cached_bytes) {
    merge_word(word, ids);
    return;
  }
  auto& cached = cache_[place_of(word) & (cache_entries - 1)];
  if (cached.bytes == word.size() &&
      std::memcmp(cached.word.data(), word.data(), word.size()) == 0) {
    ids.insert(ids.end(), cached.id.begin(), cached.id.begin() + cached.ids);
    return;
  }
  const auto before = ids.size();
  merge_word(word, ids);
  const auto count = ids.size() - before;
  if (count > cached_ids) return;
  cached.bytes = static_cast<std::uint8_t>(word.size());
  cached.ids = static_cast<std::uint8_t>(count);
  std::memcpy(cached.word.data(), word.data(), word.size());
  std::copy(ids.end() - static_cast<std::ptrdiff_t>(count), ids.end(), cached.id.begin());
}

void WordEncoder::consider(std::int32_t position) {
  const auto& left = symbols_[static_cast<std::size_t>(position)];
  if (left.next < 0) return;
  const auto* merge = model_.merges.find(left.id, symbols_[static_cast<std::size_t>(left.next)].id);
  if (merge == nullptr) return;
  heap_.push_back({merge->rank, position, merge->result});
  std::push_heap(heap_.begin(), heap_.end());
}

/// Merges the pair of lowest rank, leftmost first, until none is left: O(n log n) in the length of
/// the word. Equal ranks and outdated candidates are processed in the order of Hugging Face
/// tokenizers' Word::merge_all.
void WordEncoder::merge_word(std::string_view word, std::vector<std::int32_t>& ids) {
  TRIREME_EXPECT(word.size() < (std::size_t{1} << 31), "a word below 2 GiB");
  if (!model_.words.empty()) {
    if (const auto whole = model_.words.find(word); whole != model_.words.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  symbols_.clear();
  for (const char byte : word) {
    const auto id = model_.byte_ids[static_cast<unsigned char>(byte)];
    if (id < 0) continue;
    const auto position = static_cast<std::int32_t>(symbols_.size());
    symbols_.push_back({id, position - 1, position + 1});
  }
  if (symbols_.empty()) return;
  symbols_.back().next = -1;
  const auto count = static_cast<std::int32_t>(symbols_.size());
  heap_.clear();
  for (std::int32_t position = 0; position + 1 < count; ++position) consider(position);

  while (!heap_.empty()) {
    const auto best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    auto& left = symbols_[static_cast<std::size_t>(best.position)];
    if (left.id < 0 || left.next < 0) continue;
    auto& right = symbols_[static_cast<std::size_t>(left.next)];
    const auto* merge = model_.merges.find(left.id, right.id);
    if (merge == nullptr || merge->result != best.result) continue;
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (right.next >= 0) symbols_[static_cast<std::size_t>(right.next)].previous = best.position;
    if (left.previous >= 0) consider(left.previous);
    consider(best.position);
  }
  for (std::int32_t at = 0; at >= 0; at = symbols_[static_cast<std::size_t>(at)].next) {
    ids.push_back(symbols_[static_cast<std::size_t>(at)].id);
  }
}

}  // namespace trireme::data
