// SPDX-License-Identifier: Apache-2.0
#include "exported_texts.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"

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

Json id_or_null(const std::optional<std::int32_t>& id) {
  return id ? Json(*id) : Json(nullptr);
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

Json ExportedTexts::config() const {
  auto json = config_json(model_);
  const char* dtype = request_.dtype == device::DType::bf16 ? "bfloat16" : "float32";
  json["torch_dtype"] = dtype;
  json["dtype"] = dtype;
  // Explicit ids: without them transformers takes those of the family's first model.
  json["bos_token_id"] = id_or_null(tokenizer_ ? begin_of_text(*tokenizer_) : std::nullopt);
  json["eos_token_id"] = id_or_null(tokenizer_ ? tokenizer_->end_of_text() : std::nullopt);
  return json;
}

Json ExportedTexts::generation_config() const {
  Json json = Json::object();
  if (!tokenizer_) return json;
  if (const auto begin = begin_of_text(*tokenizer_)) json["bos_token_id"] = *begin;
  const auto stops = tokenizer_->stop_tokens();
  if (stops.size() == 1) json["eos_token_id"] = stops.front();
  if (stops.size() > 1) json["eos_token_id"] = stops;
  return json;
}

Json ExportedTexts::tokenizer_config() const {
  if (!tokenizer_) return Json::object();
  Json json{{"tokenizer_class", "PreTrainedTokenizerFast"},
            {"clean_up_tokenization_spaces", false},
            {"model_max_length", model_.max_position_embeddings}};
  const auto name = [&](const char* key, const std::optional<std::int32_t>& id) {
    if (!id) return;
    if (const auto text = tokenizer_->id_to_token(*id)) json[key] = *text;
  };
  name("bos_token", begin_of_text(*tokenizer_));
  name("eos_token", tokenizer_->end_of_text());
  return json;
}

void ExportedTexts::write_kept_or(const char* name, const Json& made) const {
  const auto kept = run_ / name;
  std::error_code error;
  base::write_file_durably(request_.folder / name, fs::is_regular_file(kept, error)
                                                       ? text_of(kept)
                                                       : base::json_text(made, 2) + "\n");
}

void ExportedTexts::write() const {
  base::write_file_durably(request_.folder / "config.json", base::json_text(config(), 2) + "\n");
  write_kept_or("generation_config.json", generation_config());
  if (!tokenizer_) return;
  // Companion files first: kept ones are the run's, or are beside the tokenizer that was named.
  write_kept_or("tokenizer_config.json", tokenizer_config());
  keep_companions(tokenizer_path_.parent_path(), request_.folder);
  base::write_file_durably(request_.folder / "tokenizer.json", text_of(tokenizer_path_));
}

}  // namespace trireme::huggingface
