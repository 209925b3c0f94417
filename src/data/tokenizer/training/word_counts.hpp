// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace trireme::data {

/// Number of occurrences of each word. Words are kept in blocks of memory of their own.
class WordCounts {
 public:
  WordCounts();

  void add(std::string_view word, std::int64_t count = 1);

  struct Entry {
    std::string_view word;
    std::uint64_t hash;
    std::int64_t count;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::string_view keep(std::string_view word);
  void grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  ///< index of an entry plus one; 0 is free
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
};

}  // namespace trireme::data
