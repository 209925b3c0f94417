// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// What a folder's generation_config.json asks for and `trireme generate` does not do, each with
/// file and key. Throws Error (checkpoint) for a file that is no JSON object.
std::vector<std::string> generation_warnings(const std::filesystem::path& folder);

/// What the tokenizer_config.json beside a tokenizer.json says otherwise than that, each with file
/// and key. Throws Error (checkpoint) for a file that is no JSON object.
std::vector<std::string> tokenizer_warnings(const std::filesystem::path& folder,
                                            const data::Tokenizer& tokenizer);

}  // namespace trireme::huggingface
