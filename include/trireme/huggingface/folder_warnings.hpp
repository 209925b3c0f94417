// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// Settings of a folder's generation_config.json that `trireme generate` does not follow, each with
/// file and key. Throws Error (checkpoint) for a file that is no JSON object.
std::vector<std::string> generation_warnings(const std::filesystem::path& folder);

/// Settings of the tokenizer_config.json beside a tokenizer.json that differ from it, each with
/// file and key. Throws Error (checkpoint) for a file that is no JSON object.
std::vector<std::string> tokenizer_warnings(const std::filesystem::path& folder,
                                            const data::Tokenizer& tokenizer);

}  // namespace trireme::huggingface
