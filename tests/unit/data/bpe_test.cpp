// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/bpe.hpp"

#include "data/tokenizer/training/bpe_trainer.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace trireme::data;
using Ids = std::vector<std::int32_t>;

namespace {

/// Bytes are their own ids; merges in the order of their ranks.
BpeModel model(const std::vector<std::array<std::int32_t, 3>>& merges) {
  BpeModel made;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    made.byte_ids[byte] = static_cast<std::int32_t>(byte);
  }
  made.merges.reserve(merges.size());
  std::uint32_t rank = 0;
  for (const auto& [left, right, result] : merges) {
    made.merges.insert(left, right, {rank++, result});
  }
  return made;
}

Ids encode(const BpeModel& made, std::string_view word) {
  Ids ids;
  WordEncoder(made).encode(word, ids);
  return ids;
}

/// The definition, spelt out: merge the pair of lowest rank, leftmost, until none merges.
Ids slowly(const BpeModel& made, std::string_view word) {
  Ids ids;
  for (const char byte : word) ids.push_back(static_cast<unsigned char>(byte));
  for (;;) {
    std::size_t best = 0;
    const Merge* merge = nullptr;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto* found = made.merges.find(ids[i], ids[i + 1]);
      if (found != nullptr && (merge == nullptr || found->rank < merge->rank)) {
        best = i;
        merge = found;
      }
    }
    if (merge == nullptr) return ids;
    ids[best] = merge->result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

/// The trainer's definition, spelt out: count all pairs again for every merge.
std::vector<std::pair<std::string, std::string>> learn_slowly(
    const std::map<std::string, int>& words, int merges) {
  std::vector<std::pair<std::vector<std::string>, int>> split;
  for (const auto& [word, count] : words) {
    std::vector<std::string> letters;
    for (const char letter : word) letters.emplace_back(1, letter);
    split.emplace_back(letters, count);
  }
  std::map<std::string, int> order;  // ids: letters as they are, tokens as they come
  for (int letter = 33; letter < 127; ++letter)
    order[std::string(1, static_cast<char>(letter))] = letter;
  std::vector<std::pair<std::string, std::string>> learned;
  while (static_cast<int>(learned.size()) < merges) {
    std::map<std::pair<int, int>, std::pair<int, std::pair<std::string, std::string>>> counts;
    for (const auto& [letters, count] : split) {
      for (std::size_t i = 0; i + 1 < letters.size(); ++i) {
        auto& entry = counts[{order.at(letters[i]), order.at(letters[i + 1])}];
        entry.first += count;
        entry.second = {letters[i], letters[i + 1]};
      }
    }
    const std::pair<int, std::pair<std::string, std::string>>* best = nullptr;
    for (const auto& [ids, entry] : counts) {
      if (best == nullptr || entry.first > best->first) best = &entry;
    }
    if (best == nullptr || best->first < 2) return learned;
    const auto pair = best->second;
    learned.push_back(pair);
    order.emplace(pair.first + pair.second, 1000 + static_cast<int>(order.size()));
    for (auto& [letters, count] : split) {
      std::vector<std::string> merged;
      for (std::size_t i = 0; i < letters.size(); ++i) {
        if (i + 1 < letters.size() && letters[i] == pair.first && letters[i + 1] == pair.second) {
          merged.push_back(letters[i] + letters[i + 1]);
          ++i;
        } else {
          merged.push_back(letters[i]);
        }
      }
      letters = merged;
    }
  }
  return learned;
}

}  // namespace

TEST_CASE("merging takes the lowest rank first and the leftmost of equals") {
  const auto made = model({{'b', 'c', 300}, {'a', 'b', 301}, {301, 'c', 302}, {'a', 'a', 303}});
  CHECK(encode(made, "abc") == Ids{'a', 300});
  CHECK(encode(made, "abab") == Ids{301, 301});
  CHECK(encode(made, "aaa") == Ids{303, 'a'});
  CHECK(encode(made, "x") == Ids{'x'});
  CHECK(encode(made, "").empty());
  CHECK(encode(model({}), "abc") == Ids{'a', 'b', 'c'});
}

TEST_CASE("merging with a heap equals merging by definition, on random words and merges") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::array<std::int32_t, 3>> merges;
    std::vector<std::int32_t> tokens{'a', 'b', 'c'};
    for (std::int32_t id = 300; id < 330; ++id) {
      merges.push_back({tokens[random() % tokens.size()], tokens[random() % tokens.size()], id});
      tokens.push_back(id);
    }
    const auto made = model(merges);
    std::string word;
    for (std::size_t i = random() % 60; i > 0; --i) word += static_cast<char>('a' + random() % 3);
    CHECK(encode(made, word) == slowly(made, word));
  }
}

TEST_CASE("bytes that the vocabulary lacks are left out, whole words may skip merging") {
  auto made = model({{'a', 'b', 300}});
  made.byte_ids['x'] = -1;
  CHECK(encode(made, "axb") == Ids{300});
  CHECK(encode(made, "xx").empty());
  made.words.emplace("hello", 400);
  CHECK(encode(made, "hello") == Ids{400});
}

TEST_CASE("words too long or too many-tokened for the cache come out alike every time") {
  const auto made = model({{'a', 'a', 300}});
  WordEncoder encoder(made);
  for (std::size_t size = 1; size < 80; ++size) {
    const std::string word(size, 'a');
    const std::string other(size, 'b');
    for (int again = 0; again < 2; ++again) {
      Ids ids;
      encoder.encode(word, ids);
      encoder.encode(other, ids);
      CHECK(ids.size() == (size + 1) / 2 + size);
    }
  }
}

TEST_CASE("the classic example of byte-pair encoding learns its classic merges") {
  // Sennrich, Haddow and Birch: low 5, lower 2, newest 6, widest 3.
  WordCounts counts;
  counts.add("low", 5);
  counts.add("lower", 2);
  counts.add("newest", 4);
  counts.add("widest", 3);
  counts.add("newest", 2);
  BpeTrainer trainer(counts, 1);
  trainer.train(1 + 256 + 4, 2);
  REQUIRE(trainer.merges().size() == 4);
  CHECK(trainer.merges()[0] == std::pair<std::string, std::string>("e", "s"));
  CHECK(trainer.merges()[1] == std::pair<std::string, std::string>("es", "t"));
  CHECK(trainer.merges()[2] == std::pair<std::string, std::string>("l", "o"));
  CHECK(trainer.merges()[3] == std::pair<std::string, std::string>("lo", "w"));
  CHECK(trainer.tokens().size() == 260);
  CHECK(trainer.tokens()[257] == "est");
}

TEST_CASE("learning step by step equals counting all pairs again for every merge") {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, int> words;
    WordCounts counts;
    for (int i = 0; i < 40; ++i) {
      std::string word;
      for (std::size_t size = 1 + random() % 12; size > 0; --size) {
        word += static_cast<char>('a' + random() % 4);
      }
      const int count = 1 + static_cast<int>(random() % 5);
      words[word] += count;
      counts.add(word, count);
    }
    BpeTrainer trainer(counts, 0);
    const auto expected = learn_slowly(words, 60);
    trainer.train(256 + static_cast<std::int32_t>(expected.size()), 2);
    // Where two merges spell the same token, a merge costs no id; then ours goes on longer.
    REQUIRE(trainer.merges().size() >= expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(trainer.merges()[i] == expected[i]);
  }
}

TEST_CASE("rare pairs are not merged and the vocabulary stays smaller") {
  WordCounts counts;
  counts.add("ab", 3);
  counts.add("cd", 2);
  BpeTrainer trainer(counts, 0);
  trainer.train(1000, 3);
  CHECK(trainer.merges().size() == 1);
}

TEST_CASE("word counts keep every word through growth") {
  WordCounts counts;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20'000; ++i) counts.add("word" + std::to_string(i), i + 1);
  }
  counts.add(std::string(3'000'000, 'x'));
  REQUIRE(counts.entries().size() == 20'001);
  for (int i = 0; i < 20'000; ++i) {
    const auto& entry = counts.entries()[static_cast<std::size_t>(i)];
    CHECK((entry.word == "word" + std::to_string(i) && entry.count == 2 * (i + 1)));
  }
}
