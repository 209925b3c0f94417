// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// A token that is found in text before any merging, such as <|endoftext|>.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< matches only where no word character is adjacent
  bool lstrip = false;       ///< includes the white space before it
  bool rstrip = false;       ///< includes the white space after it
  bool normalized = false;   ///< matched in normalised text
  bool special = false;      ///< no text: left out when decoding without special tokens
};

/// Tokens at which a text ends, and who says so.
struct TextEnds {
  std::vector<std::int32_t> ids;
  /// File and key that declare them, "DIR/config.json: eos_token_id"; empty: found by usual names.
  std::string source;
  /// Files beside it that declare other tokens, with key and value.
  std::vector<std::string> overruled;
  /// The token that ends a document.
  std::optional<std::int32_t> document_end;
};

/// Template tokens that the model expects around a text (a begin-of-text token, say), in encoding.
enum class Template { apply, omit };
/// Reading of a special token's spelling in a text.
enum class SpecialSpellings { tokens, text };
/// Treatment of special tokens in decoding.
enum class SpecialTokens { keep, skip };

/// Ends of texts that the files beside a tokenizer declare: read, or left alone where another token
/// is named or none is needed.
enum class DeclaredEnds { read, ignore };

/// Text to token ids and back: byte-level byte-pair encoding, read from and written to Hugging Face
/// tokenizer.json with equal results. Copies share their tables; all members may be called from
/// several threads.
class Tokenizer {
 public:
  /// Reads a tokenizer.json, and from the Hugging Face files beside it which tokens end a text
  /// (text_ends()). A normalizer, pre-tokenizer, model, decoder or post-processor that is
  /// not known is refused by name (exit code 6). Its truncation and padding are kept but not
  /// applied: they are about batches, not about tokens.
  static base::Result<Tokenizer> load(const std::filesystem::path& path,
                                      DeclaredEnds declared = DeclaredEnds::read);
  static base::Result<Tokenizer> parse(std::string_view json, std::string_view source);
  /// Writes a tokenizer.json that gives the same ids, here and in Hugging Face tokenizers. Throws
  /// base::Error when the file cannot be written.
  void save(const std::filesystem::path& path) const;
  std::string to_json() const;

  /// Ids of a text. Ill-formed UTF-8 is read as U+FFFD, one for each maximal ill-formed part (what
  /// Python gives with errors="replace").
  std::vector<std::int32_t> encode(std::string_view text, Template around = Template::omit) const;
  /// Text of ids; bytes that are not UTF-8 come out as U+FFFD, ids that do not exist as nothing.
  std::string decode(std::span<const std::int32_t> ids,
                     SpecialTokens special = SpecialTokens::keep) const;
  /// The bytes of ids as they are: a token may end in the middle of a character.
  std::string decode_bytes(std::span<const std::int32_t> ids,
                           SpecialTokens special = SpecialTokens::keep) const;

  /// The largest id plus one: what an embedding needs.
  std::int32_t vocab_size() const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  /// The token as tokenizer.json spells it; nothing for an id that does not exist.
  std::optional<std::string> id_to_token(std::int32_t id) const;
  const std::vector<AddedToken>& added_tokens() const;
  /// Ids that the template puts before and behind a text.
  const std::vector<std::int32_t>& ids_before_text() const;
  const std::vector<std::int32_t>& ids_behind_text() const;
  /// The same tokenizer, for which special tokens have no spelling: in a text theirs is plain text
  /// (encode_special_tokens in Hugging Face tokenizers).
  Tokenizer with_special_spellings_as_text() const;

  /// The tokens at which generation should stop. Declared ones, where the folder of the file has a
  /// generation_config.json, config.json or tokenizer_config.json that names any: the first file of
  /// these decides, and its first token ends documents. Else special tokens by their usual names:
  /// <|endoftext|>, <|end_of_text|>, </s>, <eos>, of which the first ends documents, and the ends
  /// of a turn of chat.
  const TextEnds& text_ends() const { return *ends_; }
  /// The token that ends a document.
  std::optional<std::int32_t> end_of_text() const { return ends_->document_end; }

  /// Parts of about `piece_bytes` that encode one by one to the ids of the whole text, so that a
  /// long document can be encoded by several threads. A single part where no safe cut exists.
  std::vector<std::string_view> cut(std::string_view text, std::size_t piece_bytes) const;

  /// Encoder of one thread, with a cache of words.
  class Encoder;

 private:
  friend class TextWalker;
  struct Content;
  explicit Tokenizer(std::shared_ptr<const Content> content);

  std::shared_ptr<const Content> content_;
  std::shared_ptr<const TextEnds> ends_;
};

class Tokenizer::Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  /// Appends the ids of a text, without template.
  void encode(std::string_view text, std::vector<std::int32_t>& ids);
  /// Calls of encode() whose text was not well-formed UTF-8.
  std::int64_t repaired_texts() const;
  /// Special tokens that were found in texts.
  std::int64_t special_tokens() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
