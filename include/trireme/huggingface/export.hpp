// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <filesystem>
#include <string>

namespace trireme::huggingface {

enum class ExportTokenizer { required, left_out };

struct ExportRequest {
  /// A step, or a run: its newest.
  std::filesystem::path step;
  std::filesystem::path folder;
  /// Key that the step's manifest must be signed with; empty: none.
  std::string key;
  /// tokenizer.json; empty: the one that belongs to the step.
  std::filesystem::path tokenizer;
  ExportTokenizer with_tokenizer = ExportTokenizer::required;
  /// f32 or bf16.
  device::DType dtype = device::DType::f32;
};

/// Writes a step as a Hugging Face folder: config.json, generation_config.json, safetensors,
/// tokenizer.json and tokenizer_config.json. Files that the run has kept of the folder that it was
/// imported from are copied unchanged. Throws Error (checkpoint); a required tokenizer that is
/// missing is reported before anything is written. Returns the folder of the step.
std::filesystem::path export_folder(const ExportRequest& request);

}  // namespace trireme::huggingface
