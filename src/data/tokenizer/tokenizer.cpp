// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/tokenizer.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/utf8.hpp"

#include "data/documents/json_fields.hpp"
#include "data/tokenizer/text/normalizer.hpp"
#include "data/tokenizer/text/unicode.hpp"
#include "data/tokenizer/text_ends.hpp"
#include "data/tokenizer/tokenizer_content.hpp"

#include <algorithm>

namespace trireme::data {
namespace {

using base::Failure;
using base::format;
using base::Result;
using base::Status;

Failure in_source(std::string_view source, const Failure& failure) {
  return {failure.code, format("'{}': {}", source, failure.text)};
}

using Ids = std::unordered_map<std::string, std::int32_t>;

Ids ids_of(const std::vector<std::string>& vocabulary) {
  Ids ids;
  ids.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary[id].empty()) ids.emplace(vocabulary[id], static_cast<std::int32_t>(id));
  }
  return ids;
}

Status fill_merges(const TokenizerFile& file, const Ids& ids, MergeTable& table) {
  table.reserve(file.merges.size());
  for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto& [left, right] = file.merges[rank];
    for (const auto& token : {left, right, left + right}) {
      if (ids.find(token) == ids.end()) {
        return tokenizer_failure(
            format("merge {} ('{}' and '{}') needs token '{}', which model."
                   "vocab lacks",
                   rank, left, right, token));
      }
    }
    table.insert(ids.at(left), ids.at(right),
                 {static_cast<std::uint32_t>(rank), ids.at(left + right)});
  }
  return {};
}

Status fill_bytes(const TokenizerFile& file, const Ids& ids, BpeModel& model) {
  const auto* unknown = find_member(file.frame["model"], "unk_token");
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string character;
    base::append_utf8(character, byte_to_character(static_cast<unsigned char>(byte)));
    const auto found = ids.find(character);
    model.byte_ids[byte] = found == ids.end() ? -1 : found->second;
    if (found == ids.end() && unknown != nullptr) {
      return tokenizer_failure(
          format("model.vocab has no token for byte {} and model.unk_token is set (byte-level "
                 "models need no unknown token); add all 256 bytes or set it to null",
                 byte));
    }
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path, DeclaredEnds declared) {
  const auto text = base::read_text_file(path, base::ExitCode::checkpoint);
  if (!text) return text.failure();
  auto tokenizer = parse(*text, path.string());
  if (!tokenizer || declared == DeclaredEnds::ignore) return tokenizer;
  auto ends = declared_ends(path.parent_path(), *tokenizer);
  if (!ends) return ends.failure();
  if (*ends) tokenizer->ends_ = std::make_shared<const TextEnds>(std::move(**ends));
  return tokenizer;
}

Tokenizer::Tokenizer(std::shared_ptr<const Content> content) : content_(std::move(content)) {
  ends_ = std::make_shared<const TextEnds>(usual_ends(*this));
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view source) {
  auto document = base::parse_json(json, source, base::ExitCode::checkpoint);
  if (!document) return document.failure();
  auto file = read_tokenizer_json(std::move(document).value(), source);
  if (!file) return file.failure();
  const auto* cutter_json = find_member(file->frame, "pre_tokenizer");
  auto cutter = PreTokenizer::from_json(cutter_json == nullptr ? base::Json() : *cutter_json);
  if (!cutter) return in_source(source, cutter.failure());
  auto content = std::make_shared<Content>(std::move(file).value(), std::move(cutter).value(),
                                           base::value_or_throw(word_character()));
  auto& model = content->bpe;
  content->ids = ids_of(content->file.vocabulary);
  if (auto status = fill_merges(content->file, content->ids, model.merges); !status) {
    return in_source(source, status.failure());
  }
  if (auto status = fill_bytes(content->file, content->ids, model); !status) {
    return in_source(source, status.failure());
  }
  content->fill_tokens();
  return Tokenizer(std::move(content));
}

void Tokenizer::Content::find_added_tokens(SpecialSpellings special_spellings) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::vector<std::string> raw_contents;
  std::vector<std::string> normalized_contents;
  std::string storage;
  for (const auto& token : file.added_tokens) {
    if (token.special && special_spellings == SpecialSpellings::text) continue;
    (token.normalized ? normalized : raw).push_back(token);
    if (!token.normalized) {
      raw_contents.push_back(token.content);
    } else {
      normalized_contents.emplace_back(file.nfc ? to_nfc(token.content, storage)
                                                : std::string_view(token.content));
    }
  }
  raw_tokens = AddedTokenFinder(std::move(raw), raw_contents);
  normalized_tokens = AddedTokenFinder(std::move(normalized), normalized_contents);
}

void Tokenizer::Content::fill_tokens() {
  tokens = file.vocabulary;
  for (const auto& token : file.added_tokens) {
    const auto index = static_cast<std::size_t>(token.id);
    if (index >= tokens.size()) tokens.resize(index + 1);
    tokens[index] = token.content;
    ids.emplace(token.content, token.id);
  }
  find_added_tokens(SpecialSpellings::tokens);
  bytes.resize(tokens.size());
  std::transform(tokens.begin(), tokens.end(), bytes.begin(), byte_level_bytes);
  special.assign(tokens.size(), false);
  for (const auto& token : file.added_tokens) {
    special[static_cast<std::size_t>(token.id)] = token.special;
  }
  if (!file.ignore_merges) return;
  for (std::size_t id = 0; id < file.vocabulary.size(); ++id) {
    if (is_byte_level(file.vocabulary[id]) && !bytes[id].empty()) {
      bpe.words.emplace(bytes[id], static_cast<std::int32_t>(id));
    }
  }
}

std::string Tokenizer::to_json() const {
  return base::json_text(write_tokenizer_json(content_->file), 2) + "\n";
}

void Tokenizer::save(const std::filesystem::path& path) const {
  base::write_file_durably(path, to_json());
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, Template around) const {
  std::vector<std::int32_t> ids;
  const bool apply = around == Template::apply;
  if (apply) ids = content_->file.prefix;
  Encoder(*this).encode(text, ids);
  const auto& suffix = content_->file.suffix;
  if (apply) ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids,
                                    SpecialTokens special) const {
  std::string bytes;
  for (const auto id : ids) {
    if (id < 0 || id >= vocab_size()) continue;
    const auto index = static_cast<std::size_t>(id);
    if (special == SpecialTokens::skip && content_->special[index]) continue;
    bytes += content_->bytes[index];
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialTokens special) const {
  auto bytes = decode_bytes(ids, special);
  std::string storage;
  return std::string(base::repair_utf8(bytes, storage));
}

std::int32_t Tokenizer::vocab_size() const {
  return static_cast<std::int32_t>(content_->tokens.size());
}

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto found = content_->ids.find(std::string(token));
  if (found == content_->ids.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Tokenizer::id_to_token(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return std::nullopt;
  const auto& token = content_->tokens[static_cast<std::size_t>(id)];
  if (token.empty()) return std::nullopt;
  return token;
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const {
  return content_->file.added_tokens;
}

const std::vector<std::int32_t>& Tokenizer::ids_before_text() const {
  return content_->file.prefix;
}

const std::vector<std::int32_t>& Tokenizer::ids_behind_text() const {
  return content_->file.suffix;
}

Tokenizer Tokenizer::with_special_spellings_as_text() const {
  auto content = std::make_shared<Content>(*content_);
  content->find_added_tokens(SpecialSpellings::text);
  Tokenizer changed(std::move(content));
  changed.ends_ = ends_;
  return changed;
}

namespace {

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

/// An added token that may reach across the end of a line.
bool may_span_lines(const AddedToken& token) {
  return token.content.find('\n') != std::string::npos ||
         (token.lstrip && is_letter(token.content.front()));
}

/// First place at or after `from` between "x\n" and a letter; the text's size when there is none. A
/// single line break there is a word, or the end of one, whether or not the letter follows in the
/// same piece; of two breaks the patterns' look-ahead separates the last only when the letter
/// follows.
std::size_t next_cut(std::string_view text, std::size_t from) {
  for (auto at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    const bool prints_before = at > 0 && text[at - 1] > ' ' && text[at - 1] <= '~';
    if (prints_before && at + 1 < text.size() && is_letter(text[at + 1])) return at + 1;
  }
  return text.size();
}

}  // namespace

std::vector<std::string_view> Tokenizer::cut(std::string_view text, std::size_t piece_bytes) const {
  const auto& added = added_tokens();
  std::vector<std::string_view> parts;
  const bool may_cut = content_->pre_tokenizer.ends_words_at_lines() &&
                       std::none_of(added.begin(), added.end(), may_span_lines);
  while (may_cut && text.size() > piece_bytes) {
    const auto size = next_cut(text, piece_bytes);
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  if (!text.empty()) parts.push_back(text);
  return parts;
}

}  // namespace trireme::data
