// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/box.hpp"
#include "trireme/model/parameters.hpp"

#include <cstdint>
#include <string>

namespace trireme::huggingface {

/// Where a parameter lives in Hugging Face's files.
struct StoredTensor {
  std::string name;
  /// Shape as stored there.
  layout::Shape shape;
  /// Stored [in, out] (GPT-2's Conv1D) while ours is [out, in].
  bool transposed = false;
  /// First row (of ours) inside the stored tensor, when several parameters share one.
  std::int64_t first_row = 0;
};
StoredTensor stored_tensor(const model::ModelConfig& config, const model::Parameter& parameter);

}  // namespace trireme::huggingface
