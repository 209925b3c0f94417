// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// Boxes that follow each other through a tensor, row-major, of at most 64 MiB in fp32 each: what
/// tools that look at a whole checkpoint hold of it.
std::vector<layout::Box> pieces_of(const layout::Shape& shape);

/// Loads a box of a tensor in the type that it is stored in. The span is valid until `memory`
/// changes. Throws Error (checkpoint) as load_alone() does.
std::span<const std::byte> load_piece(const std::filesystem::path& step_folder,
                                      const Manifest& manifest, const StoredTensor& tensor,
                                      const layout::Box& box, std::vector<std::byte>& memory);

}  // namespace trireme::checkpoint
