// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/run_files.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/weights.hpp"

#include "object_file.hpp"

namespace trireme::huggingface {

namespace fs = std::filesystem;

namespace {

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path, base::ExitCode::checkpoint));
}

/// A folder's generation_config.json, with the ids of tokens that only its config.json names (runs
/// keep no config.json). None where neither says anything.
std::optional<std::string> generation_config_of(const fs::path& folder) {
  const auto path = folder / generation_config;
  auto generation = object_in(path);
  const auto config = object_in(folder / "config.json");
  bool added = false;
  for (const char* key : token_id_keys) {
    const auto id = config.value(key, base::Json());
    if (id.is_null() || !generation.value(key, base::Json()).is_null()) continue;
    generation[key] = id;
    added = true;
  }
  if (added) return base::json_text(generation, 2) + "\n";
  if (!is_file(path)) return std::nullopt;
  return text_of(path);
}

/// Writes only a missing file: a run that is started again on a full disk needs no room for it.
void keep(const fs::path& path, const std::string& text) {
  if (!is_file(path) || text_of(path) != text) base::write_file_durably(path, text);
}

}  // namespace

base::Json object_in(const fs::path& path) {
  if (!is_file(path)) return base::Json::object();
  auto json = base::value_or_throw(base::read_json_file(path, base::ExitCode::checkpoint));
  if (json.is_object()) return json;
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("'{}' is not an object; fetch it again", path.string()));
}

fs::path run_of(const fs::path& weights) {
  if (!is_file(weights / "manifest.json")) return weights;
  auto step = base::absolute(weights).lexically_normal();
  if (!step.has_filename()) step = step.parent_path();
  const auto run = step.parent_path().parent_path();
  return checkpoint::checkpoints_of_run(run) == step.parent_path() ? run : weights;
}

base::Result<std::optional<model::ModelConfig>> known_model(const config::Config& config) {
  using Known = std::optional<model::ModelConfig>;
  const auto& keys = config.options().model;
  if (keys.architecture || !keys.from.empty()) return Known{};
  const auto as_known = [](base::Result<model::ModelConfig> model) -> base::Result<Known> {
    if (!model) return model.failure();
    return Known{*std::move(model)};
  };
  const auto run = config::run_directory(config);
  if (is_file(run / "model.json")) {
    const auto json = base::read_json_file(run / "model.json", base::ExitCode::checkpoint);
    if (!json) return json.failure();
    return as_known(parse_config(*json, (run / "model.json").string()));
  }
  if (!checkpoint::list(checkpoint::checkpoints_of_run(run)).empty()) {
    return as_known(model_of_weights(run));
  }
  const auto load = config.options().checkpoint.load.value_or("none");
  if (load == "none" || load.empty()) return Known{};
  return as_known(model_of_weights(load));
}

void keep_model(const model::ModelConfig& model, const fs::path& run) {
  keep(run / "model.json", base::json_text(config_json(model), 2) + "\n");
}

void keep_companions(const fs::path& folder, const fs::path& run) {
  for (const auto name : companions) {
    if (is_file(folder / name)) keep(run / name, text_of(folder / name));
  }
  if (const auto text = generation_config_of(folder)) keep(run / generation_config, *text);
}

base::Result<bool> are_same_tokenizer(const fs::path& one, const fs::path& other) {
  const auto first = base::read_text_file(one, base::ExitCode::checkpoint);
  if (!first) return first.failure();
  const auto second = base::read_text_file(other, base::ExitCode::checkpoint);
  if (!second) return second.failure();
  if (*first == *second) return true;
  const auto named = base::parse_json(*first, one.string());
  const auto own = base::parse_json(*second, other.string());
  return named.ok() && own.ok() && *named == *own;
}

void keep_tokenizer(const fs::path& tokenizer, const fs::path& run) {
  const auto own = run / "tokenizer.json";
  if (is_file(own)) {
    // One that is only written differently is the run's own, whose companions stay.
    if (base::value_or_throw(are_same_tokenizer(tokenizer, own))) return;
    // A run without a step may get another tokenizer: what the former brought is not of this one.
    for (const auto name : companions) fs::remove(run / name);
    fs::remove(run / generation_config);
    fs::remove(own);
  }
  const auto text = text_of(tokenizer);
  keep_companions(tokenizer.parent_path(), run);
  // Written last: after an interrupted start all files are copied again.
  base::write_file_durably(own, text);
}

fs::path tokenizer_of_run(const config::Config& config) {
  fs::path named = config.options().data.tokenizer;
  if (named.empty() || is_file(named)) return named;
  const auto own = config::run_directory(config) / "tokenizer.json";
  return is_file(own) ? own : named;
}

fs::path tokenizer_to_keep(const config::Config& config) {
  auto tokenizer = tokenizer_of_run(config);
  const auto load = config.options().checkpoint.load.value_or("none");
  if (tokenizer.empty() && load != "none" && !load.empty()) tokenizer = tokenizer_of_weights(load);
  if (tokenizer.empty()) tokenizer = tokenizer_of_weights(config::run_directory(config));
  return tokenizer;
}

}  // namespace trireme::huggingface
