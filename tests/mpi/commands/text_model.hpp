// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace trireme::tests {

/// A small llama with a tokenizer, and text as tokens.
struct TextModel {
  /// Hugging Face folder: config.json (32 positions), weights, tokenizer.json.
  std::filesystem::path model;
  std::filesystem::path tokens;
};

/// Made in the folder, which need not be there; the weights are as an initialisation left them.
TextModel make_text_model(const std::filesystem::path& folder, int vocabulary = 300);

}  // namespace trireme::tests
