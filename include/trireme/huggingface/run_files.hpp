// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

/// What a run directory owns beside its steps, so that it needs no folder but itself:
/// RUN/model.json (a config.json, under a name that does not make the run a Hugging Face folder),
/// RUN/tokenizer.json, and what came with these.
namespace trireme::huggingface {

/// Files that people's tools keep beside a tokenizer.json, and that training does not change.
inline constexpr std::string_view companions[] = {"tokenizer_config.json",
                                                  "special_tokens_map.json", "chat_template.jinja",
                                                  "generation_config.json"};

/// The run that a step folder lies in, or the path itself where it is none.
std::filesystem::path run_of(const std::filesystem::path& weights);

/// What the run of a configuration that does not describe its model is of: as its directory says,
/// else as the weights do that it starts from. Nothing where none of these are there, or where the
/// configuration describes the model.
base::Result<std::optional<model::ModelConfig>> known_model(const config::Config& config);

/// Writes RUN/model.json.
void keep_model(const model::ModelConfig& model, const std::filesystem::path& run);

/// Copies companions that lie in the folder into the run.
void keep_companions(const std::filesystem::path& folder, const std::filesystem::path& run);

/// Copies a tokenizer.json and its companions into the run; what they replace is moved to
/// RUN/tokenizer.previous.json with a warning. Throws base::Error.
void keep_tokenizer(const std::filesystem::path& tokenizer, const std::filesystem::path& run);

/// data.tokenizer where it is a file, else the run's own; data.tokenizer where there is neither,
/// for an error to name. Empty where nothing is asked for.
std::filesystem::path tokenizer_of_run(const config::Config& config);

}  // namespace trireme::huggingface
