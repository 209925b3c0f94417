// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/tokenizer.hpp"

#include <filesystem>
#include <optional>

namespace trireme::data {

/// Ends of text that the Hugging Face files of a folder declare for its tokenizer, from the first
/// of generation_config.json, config.json (eos_token_id: an id or a list of ids) and
/// tokenizer_config.json (eos_token: a token's text) that has any; null declares nothing. Nothing
/// when none does. Failures (checkpoint): a value of another type, an id or a text that is no
/// token.
base::Result<std::optional<TextEnds>> declared_ends(const std::filesystem::path& folder,
                                                    const Tokenizer& tokenizer);

/// Ends of text by their usual names: special tokens alone, because a vocabulary may hold "</s>" as
/// a piece of ordinary text.
TextEnds usual_ends(const Tokenizer& tokenizer);

}  // namespace trireme::data
