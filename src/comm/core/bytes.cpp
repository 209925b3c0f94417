// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trireme::comm {
namespace {

using Words = std::vector<std::int32_t>;

device::Tensor view(Words& words) {
  return {words.data(), device::DType::i32, {static_cast<std::int64_t>(words.size())}};
}

/// A size as two words: collectives move 32-bit numbers.
Words size_words(std::size_t size) {
  Words words(2);
  const auto value = static_cast<std::uint64_t>(size);
  std::memcpy(words.data(), &value, sizeof value);
  return words;
}

std::size_t size_from_words(const std::int32_t* words) {
  std::uint64_t value = 0;
  std::memcpy(&value, words, sizeof value);
  return static_cast<std::size_t>(value);
}

std::size_t words_for(std::size_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

std::vector<std::string> all_gather_bytes(ProcessGroup& group, std::string_view mine) {
  const auto ranks = static_cast<std::size_t>(group.size());
  Words my_size = size_words(mine.size());
  Words sizes(2 * ranks);
  group.all_gather(view(my_size), view(sizes));
  std::size_t most = 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    most = std::max(most, words_for(size_from_words(&sizes[2 * rank])));
  }
  Words part(most);
  std::copy(mine.begin(), mine.end(), reinterpret_cast<char*>(part.data()));
  Words whole(most * ranks);
  group.all_gather(view(part), view(whole));
  std::vector<std::string> all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all[rank].assign(reinterpret_cast<const char*>(&whole[most * rank]),
                     size_from_words(&sizes[2 * rank]));
  }
  return all;
}

std::vector<std::string> gather_bytes(ProcessGroup& group, std::string_view mine) {
  constexpr int tag = 0;
  const int rank = group.rank();
  // Parts of positions rank, rank + 1, ..: a size of two words, then as many words as hold it.
  Words parts = size_words(mine.size());
  parts.resize(2 + words_for(mine.size()));
  std::copy(mine.begin(), mine.end(), reinterpret_cast<char*>(parts.data() + 2));
  for (int distance = 1; distance < group.size(); distance *= 2) {
    Words size;
    if ((rank & distance) != 0) {
      size = size_words(parts.size());
      group.send(view(size), rank - distance, tag);
      group.send(view(parts), rank - distance, tag);
      return {};
    }
    if (rank + distance >= group.size()) continue;
    size.resize(2);
    group.receive(view(size), rank + distance, tag);
    Words theirs(size_from_words(size.data()));
    group.receive(view(theirs), rank + distance, tag);
    parts.insert(parts.end(), theirs.begin(), theirs.end());
  }
  std::vector<std::string> all;
  for (std::size_t at = 0; at < parts.size();) {
    const auto bytes = size_from_words(&parts[at]);
    all.emplace_back(reinterpret_cast<const char*>(&parts[at] + 2), bytes);
    at += 2 + words_for(bytes);
  }
  return all;
}

std::string broadcast_bytes(ProcessGroup& group, std::string_view from_root, int root) {
  // A short text, as most are, comes with its size.
  constexpr std::size_t head_bytes = 240;
  Words head = size_words(from_root.size());
  head.resize(2 + words_for(head_bytes));
  auto* const short_text = reinterpret_cast<char*>(head.data() + 2);
  from_root.copy(short_text, head_bytes);
  group.broadcast(view(head), root);
  const auto bytes = size_from_words(head.data());
  std::string text(short_text, std::min(bytes, head_bytes));
  if (bytes <= head_bytes) return text;
  Words rest(words_for(bytes - head_bytes));
  if (group.rank() == root) {
    from_root.substr(head_bytes).copy(reinterpret_cast<char*>(rest.data()), bytes - head_bytes);
  }
  group.broadcast(view(rest), root);
  return text.append(reinterpret_cast<const char*>(rest.data()), bytes - head_bytes);
}

}  // namespace trireme::comm
