// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/pieces.hpp"

#include "trireme/checkpoint/load.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace trireme::checkpoint {
namespace {

constexpr std::int64_t piece_elements = std::int64_t{1} << 24;

}  // namespace

std::vector<layout::Box> pieces_of(const layout::Shape& shape) {
  const auto outer = layout::whole(shape);
  const auto elements = layout::element_count(shape);
  std::vector<layout::Box> pieces;
  for (std::int64_t begin = 0; begin < elements; begin += piece_elements) {
    const auto end = std::min(begin + piece_elements, elements);
    auto boxes = layout::boxes_of_flat_range(outer, begin, end);
    std::move(boxes.begin(), boxes.end(), std::back_inserter(pieces));
  }
  return pieces;
}

std::span<const std::byte> load_piece(const std::filesystem::path& step_folder,
                                      const Manifest& manifest, const StoredTensor& tensor,
                                      const layout::Box& box, std::vector<std::byte>& memory) {
  const auto elements = layout::element_count(box);
  memory.resize(static_cast<std::size_t>(elements) * device::size_of(tensor.dtype));
  const std::array items{LoadItem{.name = tensor.name,
                                  .shape = tensor.shape,
                                  .box = box,
                                  .destination = {memory.data(), tensor.dtype, {elements}}}};
  load_alone(step_folder, manifest, items);
  return memory;
}

}  // namespace trireme::checkpoint
