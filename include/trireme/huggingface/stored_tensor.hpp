// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/box.hpp"
#include "trireme/model/parameters.hpp"

#include <cstdint>
#include <string>

namespace trireme::huggingface {

/// Place of a parameter in Hugging Face's files.
struct StoredTensor {
  std::string name;
  /// Shape as stored there.
  layout::Shape shape;
  /// True if stored as [in, out] (GPT-2's Conv1D), where Trireme has [out, in].
  bool transposed = false;
  /// First row (in Trireme's orientation) inside the stored tensor, when several parameters share
  /// one.
  std::int64_t first_row = 0;
};
StoredTensor stored_tensor(const model::ModelConfig& config, const model::Parameter& parameter);

}  // namespace trireme::huggingface
