// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/utf8.hpp"

#include "data/tokenizer/added_tokens.hpp"
#include "data/tokenizer/pre_tokenizer.hpp"
#include "data/tokenizer/text/normalizer.hpp"
#include "data/tokenizer/text/unicode.hpp"
#include "data/tokenizer/tokenizer_content.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// State of one thread that splits text as a tokenizer does: added tokens first, then words.
class TextWalker {
 public:
  explicit TextWalker(const Tokenizer& tokenizer)
      : content_(tokenizer.content_),
        splitter_(content_->pre_tokenizer),
        word_character_(content_->word_character) {}

  /// Calls on_token(id) and on_word(std::string_view) in the order of the text.
  template <typename OnToken, typename OnWord>
  void walk(std::string_view text, OnToken&& on_token, OnWord&& on_word) {
    const auto well_formed = base::repair_utf8(text, repaired_text_);
    if (well_formed.data() != text.data()) ++repaired_texts_;
    raw_segments_.clear();
    content_->raw_tokens.split(well_formed, word_character_, raw_segments_);
    for (const auto& segment : raw_segments_) {
      if (segment.token) {
        on_token(*segment.token);
      } else {
        walk_between(segment.text, on_token, on_word);
      }
    }
  }

  /// Texts so far that were not well-formed UTF-8.
  std::int64_t repaired_texts() const { return repaired_texts_; }

 private:
  template <typename OnToken, typename OnWord>
  void walk_between(std::string_view text, OnToken& on_token, OnWord& on_word) {
    if (content_->file.nfc) text = to_nfc(text, normalized_text_);
    if (content_->normalized_tokens.empty()) {
      splitter_.visit_words(text, on_word);
      return;
    }
    normalized_segments_.clear();
    content_->normalized_tokens.split(text, word_character_, normalized_segments_);
    for (const auto& segment : normalized_segments_) {
      if (segment.token) {
        on_token(*segment.token);
      } else {
        splitter_.visit_words(segment.text, on_word);
      }
    }
  }

  std::shared_ptr<const Tokenizer::Content> content_;
  Splitter splitter_;
  Matcher word_character_;
  std::int64_t repaired_texts_ = 0;
  // Scratch.
  std::string repaired_text_;
  std::string normalized_text_;
  std::vector<Segment> raw_segments_;
  std::vector<Segment> normalized_segments_;
};

}  // namespace trireme::data
