// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/tokenizer.hpp"

#include "data/tokenizer/text/regex.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace trireme::data {

/// A part of a text: an added token, or the text between two.
struct Segment {
  std::string_view text;
  std::optional<std::int32_t> token;
};

/// Finds tokens in text: at the leftmost place the longest one, as Hugging Face tokenizers do.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  /// contents[i]: the text to search for tokens[i].
  AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& contents);

  bool empty() const { return tokens_.empty(); }
  /// Appends the segments of a text, in order and without empty ones. `word` matches one word
  /// character; it is used only for tokens that are single words.
  void split(std::string_view text, Matcher& word, std::vector<Segment>& segments) const;

 private:
  struct Found {
    std::size_t token;
    std::size_t begin;
    std::size_t end;
  };
  struct Node {
    std::vector<std::pair<unsigned char, std::int32_t>> next;  // ascending bytes
    std::int32_t token = -1;
  };

  void insert(std::string_view content, std::int32_t token);
  std::int32_t step(std::int32_t node, unsigned char byte) const;
  std::optional<Found> find(std::string_view text, std::size_t from) const;
  static bool stands_alone(std::string_view text, const Found& found, Matcher& word);

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_{};  ///< bytes that a token may begin with
};

/// Matches one word character as Rust's \w does.
base::Result<Regex> word_character();

}  // namespace trireme::data
