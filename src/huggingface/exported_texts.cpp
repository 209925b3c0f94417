// SPDX-License-Identifier: Apache-2.0
#include "exported_texts.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"

#include <algorithm>

namespace trireme::huggingface {

namespace fs = std::filesystem;
using base::Json;

namespace {

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path, base::ExitCode::checkpoint));
}

/// Token that the tokenizer puts before any text, if it does.
std::optional<std::int32_t> begin_of_text(const data::Tokenizer& tokenizer) {
  const auto around = tokenizer.encode("", data::Template::apply);
  if (around.empty()) return std::nullopt;
  return around.front();
}

Json parsed(const std::string& text, const char* name) {
  auto json = base::value_or_throw(base::parse_json(text, name, base::ExitCode::checkpoint));
  if (json.is_object()) return json;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' of the run is not an object; import the weights again", name));
}

/// Text of a file in a folder; none where there is no such file, or no folder.
std::optional<std::string> text_in(const fs::path& folder, const char* name) {
  std::error_code error;
  if (folder.empty() || !fs::is_regular_file(folder / name, error)) return std::nullopt;
  return text_of(folder / name);
}

/// Id of a token that a file names by its text; none where it names none.
std::optional<std::int32_t> id_of_named(const Json& json, const data::Tokenizer& tokenizer) {
  const Json& text = json.is_object() && json.contains("content") ? json["content"] : json;
  if (!text.is_string()) return std::nullopt;
  // A token that the tokenizer lacks is none of its ends.
  return tokenizer.token_to_id(text.get<std::string>()).value_or(-1);
}

}  // namespace

ExportedTexts::ExportedTexts(const ExportRequest& request, const fs::path& step,
                             const model::ModelConfig& model)
    : request_(request), model_(model), run_(run_of(step)) {
  if (request.with_tokenizer == ExportTokenizer::left_out) return;
  tokenizer_path_ = request.tokenizer.empty() ? tokenizer_of_weights(step) : request.tokenizer;
  if (tokenizer_path_.empty()) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("no tokenizer belongs to '{}' (other software could not turn text into tokens "
                     "for the model); name one with --tokenizer FILE, or say --without-tokenizer",
                     request.step.string()));
  }
  tokenizer_ = base::value_or_throw(data::Tokenizer::load(tokenizer_path_));
}

std::optional<std::string> ExportedTexts::kept(const char* name) const {
  auto text = text_in(tokenizer_path_.parent_path(), name);
  return text ? text : text_in(run_, name);
}

Json ExportedTexts::config(const Json& generation) const {
  auto json = config_json(model_);
  const char* dtype = request_.dtype == device::DType::bf16 ? "bfloat16" : "float32";
  json["torch_dtype"] = dtype;
  json["dtype"] = dtype;
  // Explicit ids: without them transformers takes those of the family's first model.
  for (const char* key : token_id_keys) json[key] = generation.value(key, Json());
  if (tokenizer_ && json["bos_token_id"].is_null()) {
    if (const auto begin = begin_of_text(*tokenizer_)) json["bos_token_id"] = *begin;
  }
  return json;
}

Json ExportedTexts::generation() const {
  const auto text = kept(generation_config);
  auto json = text ? parsed(*text, generation_config) : Json::object();
  if (!tokenizer_) return json;
  if (const auto begin = begin_of_text(*tokenizer_); begin && !text) json["bos_token_id"] = *begin;
  const auto& ends = tokenizer_->text_ends().ids;
  const auto said = json.value("eos_token_id", Json());
  if (!ends.empty() && said != Json(ends) && (ends.size() > 1 || said != Json(ends.front()))) {
    json["eos_token_id"] = ends.size() == 1 ? Json(ends.front()) : Json(ends);
  }
  return json;
}

Json ExportedTexts::tokenizer_config() const {
  Json json{{"tokenizer_class", "PreTrainedTokenizerFast"},
            {"clean_up_tokenization_spaces", false},
            {"model_max_length", model_.max_position_embeddings}};
  TRIREME_EXPECT(tokenizer_.has_value(), "texts of a tokenizer have one");
  const auto name = [&](const char* key, const std::optional<std::int32_t>& id) {
    if (!id) return;
    if (const auto text = tokenizer_->id_to_token(*id)) json[key] = *text;
  };
  name("bos_token", begin_of_text(*tokenizer_));
  name("eos_token", tokenizer_->end_of_text());
  return json;
}

void ExportedTexts::write_naming_end(const char* name, const std::string& text) const {
  TRIREME_EXPECT(tokenizer_.has_value(), "texts of a tokenizer have one");
  auto json = parsed(text, name);
  const auto& ends = tokenizer_->text_ends().ids;
  const auto named = id_of_named(json.value("eos_token", Json()), *tokenizer_);
  const bool agrees =
      !named || ends.empty() || std::find(ends.begin(), ends.end(), *named) != ends.end();
  if (agrees) {
    write_text(name, text);
    return;
  }
  const auto end = tokenizer_->id_to_token(ends.front()).value_or("");
  base::log::warning("huggingface", "{}: eos_token becomes '{}', the end of text of {} (it was {})",
                     name, end, generation_config, base::json_text(json["eos_token"]));
  json["eos_token"] = end;
  write_text(name, base::json_text(json, 2) + "\n");
}

void ExportedTexts::write_text(const char* name, const std::string& text) const {
  base::write_file_durably(request_.folder / name, text);
}

void ExportedTexts::write() const {
  const auto made = generation();
  write_text("config.json", base::json_text(config(made), 2) + "\n");
  const auto text = kept(generation_config);
  const bool unchanged = text && parsed(*text, generation_config) == made;
  write_text(generation_config, unchanged ? *text : base::json_text(made, 2) + "\n");
  if (!tokenizer_) return;
  const auto beside = [&](const char* name) {
    return text_in(tokenizer_path_.parent_path(), name);
  };
  write_naming_end(
      "tokenizer_config.json",
      kept("tokenizer_config.json").value_or(base::json_text(tokenizer_config(), 2) + "\n"));
  if (const auto map = beside("special_tokens_map.json")) {
    write_naming_end("special_tokens_map.json", *map);
  }
  if (const auto chat = beside("chat_template.jinja")) write_text("chat_template.jinja", *chat);
  write_text("tokenizer.json", text_of(tokenizer_path_));
}

}  // namespace trireme::huggingface
