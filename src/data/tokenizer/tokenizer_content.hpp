// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer.hpp"

#include "data/tokenizer/added_tokens.hpp"
#include "data/tokenizer/bpe.hpp"
#include "data/tokenizer/pre_tokenizer.hpp"
#include "data/tokenizer/tokenizer_json.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace trireme::data {

struct Tokenizer::Content {
  Content(TokenizerFile read, PreTokenizer cutter, Regex one_word_character)
      : file(std::move(read)),
        pre_tokenizer(std::move(cutter)),
        word_character(std::move(one_word_character)) {}

  /// Derives all members below from the file.
  void fill_tokens();
  /// Makes the finders of added tokens.
  void find_added_tokens(SpecialSpellings special_spellings);

  TokenizerFile file;
  PreTokenizer pre_tokenizer;
  Regex word_character;
  BpeModel bpe;
  AddedTokenFinder raw_tokens;         // sought in the text as it is
  AddedTokenFinder normalized_tokens;  // sought in normalised text
  std::unordered_map<std::string, std::int32_t> ids;
  std::vector<std::string> bytes;   // [vocab_size], what decoding writes
  std::vector<std::string> tokens;  // [vocab_size], as spelt; empty where an id is free
  std::vector<bool> special;        // [vocab_size]
};

}  // namespace trireme::data
