// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <filesystem>
#include <string>

namespace trireme::huggingface {

struct ImportRequest {
  /// Hugging Face folder to import.
  std::filesystem::path folder;
  std::filesystem::path run;
  /// "trireme 0.1.0 (1a2b3c4)".
  std::string tool_version;
  /// Identity::job.
  std::string job;
};

/// Collective over the world. Writes the weights of a Hugging Face folder as step 0 of a run that
/// has no steps yet, without optimizer state: moments begin at zero when it is trained. Values
/// keep their bits (bf16 stays bf16; f16 becomes f32). Each rank holds its share of the rows.
/// Returns the step's folder. Throws Error (checkpoint): no config.json, or of a model that is not
/// built in; files that are missing, cut or malformed; a tensor that is missing or has another
/// shape; a run with steps. A run that another process holds: Error (launch).
std::filesystem::path import_folder(const ImportRequest& request, comm::ProcessGroup& world);

}  // namespace trireme::huggingface
