// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

/// Files of a run directory beside its steps that make it independent of other folders:
/// RUN/model.json (a config.json, under a name that does not make the run a Hugging Face folder),
/// RUN/tokenizer.json, and their companion files.
namespace trireme::huggingface {

inline constexpr const char* generation_config = "generation_config.json";

/// Files that tools keep beside a tokenizer.json, and that training does not change; beside them
/// generation_config.json.
inline constexpr std::string_view companions[] = {"tokenizer_config.json",
                                                  "special_tokens_map.json", "chat_template.jinja"};

/// Keys of ids of tokens, in config.json and generation_config.json.
inline constexpr const char* token_id_keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};

/// Run of a step folder, or the path itself where it is in no run.
std::filesystem::path run_of(const std::filesystem::path& weights);

/// Model of a run whose configuration does not describe it: from the run's directory, else from the
/// weights that it starts from. None where these are missing, or where the configuration describes
/// the model.
base::Result<std::optional<model::ModelConfig>> known_model(const config::Config& config);

/// Writes RUN/model.json.
void keep_model(const model::ModelConfig& model, const std::filesystem::path& run);

/// Copies companion files in the folder into the run, and its generation_config.json, with the ids
/// of tokens that only its config.json names. Throws base::Error.
void keep_companions(const std::filesystem::path& folder, const std::filesystem::path& run);

/// True if both files have the same text or, written differently, the same meaning.
base::Result<bool> are_same_tokenizer(const std::filesystem::path& one,
                                      const std::filesystem::path& other);

/// Copies a tokenizer.json and its companions into the run; the caller has found that the run may
/// take it. A run that has the same tokenizer already keeps all as it is; of another one the
/// companions are removed. Throws base::Error.
void keep_tokenizer(const std::filesystem::path& tokenizer, const std::filesystem::path& run);

/// Path of the tokenizer: data.tokenizer where it is a file, else the run's own; data.tokenizer
/// where there is neither, for an error to name. Empty where none is configured.
std::filesystem::path tokenizer_of_run(const config::Config& config);

/// Path of the tokenizer that the run has or will have: tokenizer_of_run(), else that of the
/// weights that it begins with (checkpoint.load), else the one that it has kept. Empty if there is
/// none.
std::filesystem::path tokenizer_to_keep(const config::Config& config);

}  // namespace trireme::huggingface
