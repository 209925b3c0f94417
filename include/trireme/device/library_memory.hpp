// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/attention_choice.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace trireme::device {

/// Memory of a device that a library works in, beside all arenas.
struct LibraryMemory {
  /// "cuBLASLt", "cuDNN", "own kernels".
  std::string library;
  std::size_t bytes = 0;
};

/// Workspace that cuBLASLt asks for on Hopper; taken when a GPU is set up.
inline constexpr std::size_t gemm_workspace_bytes = std::size_t{32} << 20;

/// Memory that libraries take at most on a GPU in a run whose attention is of this size: of cuDNN's
/// nothing where it does not serve (docs/performance.md).
std::vector<LibraryMemory> planned_library_memory(const AttentionSize& size,
                                                  const AttentionChoice& choice);

}  // namespace trireme::device
