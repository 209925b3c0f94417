// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/folder_warnings.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include "folder_fields.hpp"
#include "object_file.hpp"

#include <algorithm>

namespace trireme::huggingface {
namespace {

namespace fs = std::filesystem;
using base::Json;

std::vector<std::string> of_table(const Json& json, FieldPlace place, const fs::path& path) {
  std::vector<std::string> warnings;
  // The rows of these files are of all families alike.
  base::success_or_throw(
      check_fields(json, place, model::families().front()->architecture, path.string(), warnings));
  return warnings;
}

/// Text of a token: alone, or as an added token is written.
std::string token_text(const Json& json) {
  const Json& text = json.is_object() && json.contains("content") ? json["content"] : json;
  return text.is_string() ? text.get<std::string>() : std::string{};
}

/// Texts that the file declares to be added tokens, and the tokenizer has not.
std::vector<std::string> undeclared(const Json& json, const data::Tokenizer& tokenizer) {
  const auto& added = tokenizer.added_tokens();
  std::vector<std::string> texts;
  const auto look_for = [&](const std::string& text, const std::string& id) {
    const bool there = std::any_of(added.begin(), added.end(), [&](const auto& token) {
      return token.content == text && (id.empty() || id == std::to_string(token.id));
    });
    if (!there && !text.empty()) texts.push_back(id.empty() ? text : id + " " + text);
  };
  if (const auto tokens = json.value("added_tokens_decoder", Json()); tokens.is_object()) {
    for (const auto& [id, token] : tokens.items()) look_for(token_text(token), id);
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto tokens = json.value(key, Json());
    if (!tokens.is_structured()) continue;
    for (const auto& token : tokens) look_for(token_text(token), "");
  }
  return texts;
}

}  // namespace

std::vector<std::string> generation_warnings(const fs::path& folder) {
  const auto path = folder / "generation_config.json";
  return of_table(object_in(path), FieldPlace::generation, path);
}

std::vector<std::string> tokenizer_warnings(const fs::path& folder,
                                            const data::Tokenizer& tokenizer) {
  constexpr std::size_t most_named = 4;
  const auto path = folder / "tokenizer_config.json";
  const auto json = object_in(path);
  auto warnings = of_table(json, FieldPlace::tokenizer, path);
  auto texts = undeclared(json, tokenizer);
  const auto count = texts.size();
  if (count > most_named) texts.resize(most_named);
  if (count > 0) {
    warnings.push_back(
        base::format("{}: declares added tokens that tokenizer.json has not, which decides: {}{}",
                     path.string(), base::join(texts, ", "), count > most_named ? ", ..." : ""));
  }
  const auto prefix = json.value("add_prefix_space", Json());
  const bool has_prefix = tokenizer.encode("a") == tokenizer.encode(" a");
  if (prefix.is_boolean() && prefix != has_prefix) {
    warnings.push_back(
        base::format("{}: add_prefix_space = {}, but tokenizer.json, which decides, says {}",
                     path.string(), base::json_text(prefix), has_prefix));
  }
  return warnings;
}

}  // namespace trireme::huggingface
