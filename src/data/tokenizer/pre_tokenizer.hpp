// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"

#include "data/tokenizer/text/regex.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// Cuts text into the words that merging never crosses: regular expressions one after the other,
/// each applied to every piece that the one before left.
class PreTokenizer {
 public:
  /// Pre-tokenizer from the field "pre_tokenizer" of a tokenizer.json: ByteLevel, Split by a
  /// regular expression with behavior Isolated, and Sequences of these that end with ByteLevel.
  /// Others are refused by name.
  static base::Result<PreTokenizer> from_json(const base::Json& json);

  /// True when a word always ends between a line break that follows a printing character and an
  /// ASCII letter, and pieces get no space in front: text may then be cut there. True for the
  /// patterns of GPT-2, Llama 3 and Qwen 2; false for all others.
  bool ends_words_at_lines() const { return ends_words_at_lines_; }

 private:
  friend class Splitter;
  struct Step {
    bool add_prefix_space = false;
    std::optional<Regex> regex;
  };
  base::Status add(const base::Json& json);
  base::Status add_byte_level(const base::Json& json);
  base::Status add_split(const base::Json& json);

  std::vector<Step> steps_;
  bool byte_level_ = false;
  bool ends_words_at_lines_ = true;
};

/// Splitting state of one thread.
class Splitter {
 public:
  explicit Splitter(const PreTokenizer& pre_tokenizer);

  /// Calls visit(std::string_view) for each word of well-formed UTF-8, in order.
  template <typename Visit>
  void visit_words(std::string_view text, Visit&& visit) {
    visit_from(0, text, visit);
  }

 private:
  struct Step {
    bool add_prefix_space;
    std::optional<Matcher> matcher;
    std::string prefixed;  // scratch
  };

  template <typename Visit>
  void visit_from(std::size_t index, std::string_view text, Visit& visit) {
    if (text.empty()) return;
    if (index == steps_.size()) {
      visit(text);
      return;
    }
    auto& step = steps_[index];
    if (step.add_prefix_space && text.front() != ' ') {
      step.prefixed.assign(1, ' ').append(text);
      text = step.prefixed;
    }
    if (!step.matcher) {
      visit_from(index + 1, text, visit);
      return;
    }
    std::size_t done = 0;
    while (done < text.size()) {
      const auto match = step.matcher->find(text, done);
      if (!match) break;
      visit_from(index + 1, text.substr(done, match->begin - done), visit);
      visit_from(index + 1, text.substr(match->begin, match->end - match->begin), visit);
      done = match->end;
    }
    visit_from(index + 1, text.substr(done), visit);
  }

  std::vector<Step> steps_;
};

}  // namespace trireme::data
