// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/data/tokenizer.hpp"

#include <string>
#include <utility>
#include <vector>

namespace trireme::data {

/// Checked content of a tokenizer.json, with its tokens as the file spells them.
struct TokenizerFile {
  /// Original document without the vocabulary and the merges, for writing it back.
  base::Json frame;
  std::vector<std::string> vocabulary;                      // [ids]; an id that is free is empty
  std::vector<std::pair<std::string, std::string>> merges;  // [ranks]
  std::vector<AddedToken> added_tokens;
  bool ignore_merges = false;
  bool nfc = false;
  /// Ids before and after the text, from the post-processor.
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
};

/// Checks and splits a parsed tokenizer.json; failures name `source`.
base::Result<TokenizerFile> read_tokenizer_json(base::Json json, std::string_view source);
base::Json write_tokenizer_json(const TokenizerFile& file);

}  // namespace trireme::data
