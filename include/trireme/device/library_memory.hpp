#pragma once

#include "trireme/device/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::device {

/// Memory of a device that a library works in, beside all arenas.
struct LibraryMemory {
  /// "cuBLASLt", "cuDNN", "own kernels".
  std::string library;
  std::size_t bytes = 0;
};

/// What cuBLASLt asks for on Hopper; taken when a card is set up.
inline constexpr std::size_t product_workspace_bytes = std::size_t{32} << 20;

/// Attention of one micro-batch on one rank.
struct AttentionSize {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool dropout = false;
};

/// What libraries take at most on a card in a run whose attention is of this type and size: of
/// cuDNN's nothing where it does not serve (docs/performance.md).
std::vector<LibraryMemory> planned_library_memory(DType dtype, const AttentionSize& size);

}  // namespace trireme::device
