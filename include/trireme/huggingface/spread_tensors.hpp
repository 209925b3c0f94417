// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// Tensor whose elements are distributed over the ranks.
struct SpreadTensor {
  std::string name;
  layout::Shape shape;
  /// Writes this rank's part of elements [begin, end), counted row-major, into `zeros` ([end -
  /// begin], zeros at first). Exactly one rank writes each element.
  std::function<void(std::int64_t begin, std::int64_t end, float* zeros)> put;
};

/// Collective over the world. Rank 0 writes one safetensors file, fp32, of tensors that all ranks
/// name alike; no rank ever holds more than a piece of one. Throws Error (checkpoint).
void write_spread_tensors(const std::filesystem::path& file,
                          const std::vector<SpreadTensor>& tensors, comm::ProcessGroup& world);

}  // namespace trireme::huggingface
