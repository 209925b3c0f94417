// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/tokenizer_json.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include "data/documents/json_fields.hpp"
#include "data/tokenizer/post_processor.hpp"

#include <algorithm>
#include <unordered_map>

namespace trireme::data {
namespace {

using base::Failure;
using base::format;
using base::Json;
using base::Result;
using base::Status;

/// A few ids may be free, but a file must not claim a table of billions.
constexpr std::uint64_t most_free_ids = 65536;

Result<std::int32_t> read_id(const Json& json, const std::string& token, std::size_t tokens) {
  const auto limit = tokens + most_free_ids;
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= limit) {
    return tokenizer_failure(
        format("token '{}' has id {}, expected a whole number below {} (there are {} tokens)",
               token, base::json_text(json), limit, tokens));
  }
  return json.get<std::int32_t>();
}

Result<bool> read_normalizer(const Json& json) {
  const auto type = type_of(json);
  if (type == "NFC") return true;
  const auto* parts = find_member(json, "normalizers");
  if (type == "Sequence" && parts != nullptr && parts->is_array()) {
    bool nfc = false;
    for (const auto& part : *parts) {
      const auto one = read_normalizer(part);
      if (!one) return one;
      nfc = nfc || *one;
    }
    return nfc;
  }
  return tokenizer_failure(format(
      "the normalizer '{}' is not one that Trireme knows (guessing would give other tokens); it "
      "knows NFC",
      type));
}

/// Settings of a model that would change ids in ways that byte-level models do not use.
Status refuse_unused_settings(const Json& model) {
  // Old files, GPT-2's among them, do not name their model.
  const bool old_bpe = find_member(model, "type") == nullptr && find_member(model, "merges");
  if (const auto type = type_of(model); type != "BPE" && !old_bpe) {
    return tokenizer_failure(
        format("the model '{}' is not one that Trireme knows; it knows BPE", type));
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto* member = find_member(model, name);
    if (member != nullptr && *member != "") {
      return tokenizer_failure(
          format("model.{} is {}, which byte-level models do not use", name, member->dump()));
    }
  }
  if (const auto* dropout = find_member(model, "dropout"); dropout && *dropout != 0.0) {
    return tokenizer_failure(
        format("model.dropout is {} (every run would give other tokens); set it to null",
               dropout->dump()));
  }
  const auto fallback = bool_member(model, "byte_fallback", false);
  if (!fallback) return fallback.failure();
  if (*fallback) {
    return tokenizer_failure("model.byte_fallback is true, which byte-level models do not use");
  }
  return {};
}

Status read_vocabulary(const Json& model, TokenizerFile& file) {
  const auto* vocabulary = find_member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
    return tokenizer_failure(
        "model.vocab is absent or empty, expected an object of tokens and ids");
  }
  for (const auto& [token, json] : vocabulary->items()) {
    const auto id = read_id(json, token, vocabulary->size());
    if (!id) return id.failure();
    const auto index = static_cast<std::size_t>(*id);
    if (index >= file.vocabulary.size()) file.vocabulary.resize(index + 1);
    if (token.empty() || !file.vocabulary[index].empty()) {
      return tokenizer_failure(format("model.vocab: id {} belongs to '{}' and to '{}'", *id,
                                      file.vocabulary[index], token));
    }
    file.vocabulary[index] = token;
  }
  return {};
}

Result<std::pair<std::string, std::string>> read_merge(const Json& json) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return std::pair(json[0].get<std::string>(), json[1].get<std::string>());
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const auto space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return tokenizer_failure(format("model.merges: {} is no pair of tokens", base::json_text(json)));
}

Status read_merges(const Json& model, TokenizerFile& file) {
  const auto* merges = find_member(model, "merges");
  if (merges == nullptr || !merges->is_array()) {
    return tokenizer_failure("model.merges is absent, expected a list of pairs of tokens");
  }
  file.merges.reserve(merges->size());
  for (const auto& json : *merges) {
    auto merge = read_merge(json);
    if (!merge) return merge.failure();
    file.merges.push_back(std::move(merge).value());
  }
  return {};
}

Result<AddedToken> read_added_token(const Json& json, std::size_t tokens) {
  auto content = text_member(json, "content");
  if (!content) return content.failure();
  AddedToken token;
  token.content = std::move(content).value();
  const auto* id_json = find_member(json, "id");
  const auto id = read_id(id_json == nullptr ? Json() : *id_json, token.content, tokens);
  if (!id) return id.failure();
  token.id = *id;
  for (const auto& [name, target] :
       {std::pair{"single_word", &token.single_word}, std::pair{"lstrip", &token.lstrip},
        std::pair{"rstrip", &token.rstrip}, std::pair{"normalized", &token.normalized},
        std::pair{"special", &token.special}}) {
    const auto value = bool_member(json, name, false);
    if (!value) return value.failure();
    *target = *value;
  }
  return token;
}

/// Hugging Face tokenizers assign ids of added tokens themselves: a token of the vocabulary keeps
/// its id, others follow after the highest. A file with other ids would be ambiguous.
Status read_added_tokens(const Json& document, TokenizerFile& file) {
  const auto* list = find_member(document, "added_tokens");
  if (list == nullptr) return {};
  if (!list->is_array()) return tokenizer_failure("added_tokens is no list");
  std::unordered_map<std::string_view, std::int32_t> known;
  for (std::size_t id = 0; id < file.vocabulary.size(); ++id) {
    if (!file.vocabulary[id].empty()) known[file.vocabulary[id]] = static_cast<std::int32_t>(id);
  }
  auto next = static_cast<std::int32_t>(known.size());
  file.added_tokens.reserve(list->size());  // `known` views the contents
  for (const auto& json : *list) {
    auto token = read_added_token(json, file.vocabulary.size() + list->size());
    if (!token) return token.failure();
    if (token->content.empty()) continue;
    const auto found = known.find(token->content);
    const auto expected = found == known.end() ? next : found->second;
    if (token->id != expected) {
      return tokenizer_failure(
          format("added token '{}' has id {}, expected {} (its id in model.vocab, or the next one "
                 "that is free)",
                 token->content, token->id, expected));
    }
    next = std::max(next, expected + 1);
    file.added_tokens.push_back(std::move(token).value());
    known[file.added_tokens.back().content] = expected;
  }
  return {};
}

Status read_decoder(const Json& document) {
  const auto* decoder = find_member(document, "decoder");
  const auto type = decoder == nullptr ? std::string("null") : type_of(*decoder);
  if (type == "ByteLevel") return {};
  return tokenizer_failure(
      format("the decoder '{}' is not one that Trireme knows; it knows ByteLevel", type));
}

Status read_all(const Json& document, TokenizerFile& file) {
  if (const auto* version = find_member(document, "version"); !version || *version != "1.0") {
    return tokenizer_failure(
        format("version is {}, expected \"1.0\"", version == nullptr ? "absent" : version->dump()));
  }
  if (const auto* normalizer = find_member(document, "normalizer"); normalizer != nullptr) {
    const auto nfc = read_normalizer(*normalizer);
    if (!nfc) return nfc.failure();
    file.nfc = *nfc;
  }
  const auto* model = find_member(document, "model");
  if (model == nullptr) return tokenizer_failure("model is absent");
  if (auto status = refuse_unused_settings(*model); !status) return status;
  const auto ignore = bool_member(*model, "ignore_merges", false);
  if (!ignore) return ignore.failure();
  file.ignore_merges = *ignore;
  if (auto status = read_vocabulary(*model, file); !status) return status;
  if (auto status = read_merges(*model, file); !status) return status;
  if (auto status = read_added_tokens(document, file); !status) return status;
  if (auto status = read_decoder(document); !status) return status;
  const auto* processor = find_member(document, "post_processor");
  if (processor == nullptr) return {};
  auto around = read_post_processor(*processor);
  if (!around) return around.failure();
  file.prefix = std::move(around->prefix);
  file.suffix = std::move(around->suffix);
  return {};
}

}  // namespace

Result<TokenizerFile> read_tokenizer_json(Json json, std::string_view source) {
  TokenizerFile file;
  if (const auto status = read_all(json, file); !status) {
    return Failure{status.failure().code, format("'{}': {}", source, status.failure().text)};
  }
  auto& model = json["model"];
  model["vocab"] = Json::object();
  model["merges"] = Json::array();
  file.frame = std::move(json);
  return file;
}

Json write_tokenizer_json(const TokenizerFile& file) {
  auto json = file.frame;
  auto& model = json["model"];
  auto& vocabulary = model["vocab"].get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < file.vocabulary.size(); ++id) {
    if (file.vocabulary[id].empty()) continue;
    // Appended without a lookup: a search for each key would cost the square of the vocabulary.
    vocabulary.Container::emplace_back(file.vocabulary[id], id);
  }
  auto& merges = model["merges"];
  for (const auto& [left, right] : file.merges) merges.push_back(format("{} {}", left, right));
  return json;
}

}  // namespace trireme::data
