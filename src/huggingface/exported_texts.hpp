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
  /// Text of the file that belongs to the tokenizer, else of the one that the run has kept.
  std::optional<std::string> kept(const char* name) const;
  base::Json config(const base::Json& generation) const;
  /// The kept file with ends of text that are the tokenizer's, or a new one.
  base::Json generation() const;
  base::Json tokenizer_config() const;
  /// Writes a file that names the end of text, with one of the tokenizer's.
  void write_naming_end(const char* name, const std::string& text) const;
  void write_text(const char* name, const std::string& text) const;

  const ExportRequest& request_;
  const model::ModelConfig& model_;
  std::filesystem::path run_;
  /// Path of the tokenizer; its companions are beside it.
  std::filesystem::path tokenizer_path_;
  std::optional<data::Tokenizer> tokenizer_;
};

}  // namespace trireme::huggingface
