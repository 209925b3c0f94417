// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trireme::data {

/// Result of merging two neighbours; the lower rank comes first.
struct Merge {
  std::uint32_t rank;
  std::int32_t result;
};

/// A map from pairs of ids to merges: open addressing, built once.
class MergeTable {
 public:
  void reserve(std::size_t merges);
  /// A pair that is there already is replaced.
  void insert(std::int32_t left, std::int32_t right, Merge merge);
  /// Null when the pair does not merge.
  const Merge* find(std::int32_t left, std::int32_t right) const {
    for (auto slot = slot_of(left, right);; slot = (slot + 1) & mask_) {
      const auto& entry = entries_[slot];
      if (entry.left == left && entry.right == right) return &entry.merge;
      if (entry.left < 0) return nullptr;
    }
  }

 private:
  struct Entry {
    std::int32_t left = -1;
    std::int32_t right = -1;
    Merge merge{};
  };
  std::size_t slot_of(std::int32_t left, std::int32_t right) const {
    const auto key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
                     static_cast<std::uint32_t>(right);
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_) & mask_;
  }

  std::vector<Entry> entries_{1};
  std::size_t mask_ = 0;
  int shift_ = 32;
};

/// Byte-pair encoding over bytes.
struct BpeModel {
  std::array<std::int32_t, 256> byte_ids{};  ///< -1 for a byte that the vocabulary lacks
  MergeTable merges;
  /// Bytes of each token, for whole words; filled when words that are tokens skip merging.
  std::unordered_map<std::string_view, std::int32_t> words;
};

/// Merging state of one thread: scratch, and a cache of words that is bounded and never grows.
class WordEncoder {
 public:
  explicit WordEncoder(const BpeModel& model);

  /// Appends the ids of one word.
  void encode(std::string_view word, std::vector<std::int32_t>& ids);

 private:
  static constexpr std::size_t cached_bytes = 30;
  static constexpr std::size_t cached_ids = 8;
  static constexpr std::size_t cache_entries = std::size_t{1} << 14;
  /// Cache line of one word; each word has one place, in which a newer word replaces an older one.
  struct alignas(64) Cached {
    std::uint8_t bytes = 0;
    std::uint8_t ids = 0;
    std::array<char, cached_bytes> word{};
    std::array<std::int32_t, cached_ids> id{};
  };
  struct Symbol {
    std::int32_t id;  ///< -1 once merged into the one before
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t position;
    std::int32_t result;
    /// The order of a heap whose top is the lowest rank, leftmost first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  void merge_word(std::string_view word, std::vector<std::int32_t>& ids);
  void consider(std::int32_t position);

  const BpeModel& model_;
  std::vector<Cached> cache_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace trireme::data
