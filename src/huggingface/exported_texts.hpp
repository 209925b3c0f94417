// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/huggingface/export.hpp"
#include "trireme/model/model_config.hpp"

#include <optional>

namespace trireme::huggingface {

/// Text files beside the weights of an exported folder: config.json, generation_config.json, and
/// unless it is left out the tokenizer.
class ExportedTexts {
 public:
  /// Reads all that is to be written. Throws Error (checkpoint) for a tokenizer that is required
  /// and not there.
  ExportedTexts(const ExportRequest& request, const std::filesystem::path& step,
                const model::ModelConfig& model);
  void write() const;

 private:
  /// Writes the file that the run has kept, else `made`.
  void write_kept_or(const char* name, const base::Json& made) const;
  base::Json config() const;
  base::Json generation_config() const;
  base::Json tokenizer_config() const;

  const ExportRequest& request_;
  const model::ModelConfig& model_;
  std::filesystem::path run_;
  /// Path of the tokenizer; its companions are beside it.
  std::filesystem::path tokenizer_path_;
  std::optional<data::Tokenizer> tokenizer_;
};

}  // namespace trireme::huggingface
