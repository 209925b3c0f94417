#include "trireme/data/tokenizer.hpp"

#include "data/normalizer.hpp"
#include "data/tokenizer_content.hpp"
#include "data/unicode.hpp"

namespace trireme::data {

struct Tokenizer::Encoder::State {
  explicit State(std::shared_ptr<const Content> shared)
      : content(std::move(shared)),
        splitter(content->pre_tokenizer),
        word_character(content->word_character),
        words(content->bpe) {}

  void encode_between_tokens(std::string_view text, std::vector<std::int32_t>& ids);
  void encode_words(std::string_view text, std::vector<std::int32_t>& ids) {
    splitter.visit_words(text, [&](std::string_view word) { words.encode(word, ids); });
  }

  std::shared_ptr<const Content> content;
  Splitter splitter;
  Matcher word_character;
  WordEncoder words;
  std::int64_t repaired = 0;
  // Scratch.
  std::string repaired_text;
  std::string normalized_text;
  std::vector<Segment> raw_segments;
  std::vector<Segment> normalized_segments;
};

Tokenizer::Encoder::Encoder(const Tokenizer& tokenizer)
    : state_(std::make_unique<State>(tokenizer.content_)) {}
Tokenizer::Encoder::Encoder(Encoder&&) noexcept = default;
Tokenizer::Encoder& Tokenizer::Encoder::operator=(Encoder&&) noexcept = default;
Tokenizer::Encoder::~Encoder() = default;

std::int64_t Tokenizer::Encoder::repaired_texts() const {
  return state_->repaired;
}

void Tokenizer::Encoder::State::encode_between_tokens(std::string_view text,
                                                      std::vector<std::int32_t>& ids) {
  if (content->file.nfc) text = to_nfc(text, normalized_text);
  if (content->normalized_tokens.empty()) {
    encode_words(text, ids);
    return;
  }
  normalized_segments.clear();
  content->normalized_tokens.split(text, word_character, normalized_segments);
  for (const auto& segment : normalized_segments) {
    if (segment.token) {
      ids.push_back(*segment.token);
    } else {
      encode_words(segment.text, ids);
    }
  }
}

void Tokenizer::Encoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  auto& state = *state_;
  const auto well_formed = repair_utf8(text, state.repaired_text);
  if (well_formed.data() != text.data()) ++state.repaired;
  state.raw_segments.clear();
  state.content->raw_tokens.split(well_formed, state.word_character, state.raw_segments);
  for (const auto& segment : state.raw_segments) {
    if (segment.token) {
      ids.push_back(*segment.token);
    } else {
      state.encode_between_tokens(segment.text, ids);
    }
  }
}

}  // namespace trireme::data
