// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/tokenizer.hpp"

#include "data/tokenizer/bpe.hpp"
#include "data/tokenizer/text/text_walker.hpp"

namespace trireme::data {

struct Tokenizer::Encoder::State {
  explicit State(const Tokenizer& tokenizer)
      : content(tokenizer.content_), walker(tokenizer), words(content->bpe) {}

  std::shared_ptr<const Content> content;
  TextWalker walker;
  WordEncoder words;
  std::int64_t special_tokens = 0;
};

Tokenizer::Encoder::Encoder(const Tokenizer& tokenizer)
    : state_(std::make_unique<State>(tokenizer)) {}
Tokenizer::Encoder::Encoder(Encoder&&) noexcept = default;
Tokenizer::Encoder& Tokenizer::Encoder::operator=(Encoder&&) noexcept = default;
Tokenizer::Encoder::~Encoder() = default;

std::int64_t Tokenizer::Encoder::repaired_texts() const {
  return state_->walker.repaired_texts();
}

std::int64_t Tokenizer::Encoder::special_tokens() const {
  return state_->special_tokens;
}

void Tokenizer::Encoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  auto& words = state_->words;
  const auto& special = state_->content->special;
  state_->walker.walk(
      text,
      [&](std::int32_t token) {
        state_->special_tokens += special[static_cast<std::size_t>(token)] ? 1 : 0;
        ids.push_back(token);
      },
      [&](std::string_view word) { words.encode(word, ids); });
}

}  // namespace trireme::data
