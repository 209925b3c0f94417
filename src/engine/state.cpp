// What an engine holds, as boxes of logical tensors.
#include "parts.hpp"

#include <algorithm>

namespace trireme::engine {

using device::Tensor;

namespace {

/// Calls act(piece, flat range inside it) for every piece that meets the range.
template <typename Act>
void each_piece(const model::StageParameters& stage, layout::FlatRange range, const Act& act) {
  for (const auto& slab : stage.slabs()) {
    for (const auto& piece : slab.pieces) {
      const auto begin = std::max(range.begin, piece.flat.begin);
      const auto end = std::min(range.end, piece.flat.end);
      if (begin < end) act(piece, layout::FlatRange{begin, end});
    }
  }
}

/// `values` holds the elements of `segment`; names what of it belongs to which tensor.
void append_parts(const model::StageParameters& stage, const optim::Segment& segment,
                  const std::string& prefix, const Tensor& values, std::vector<StatePart>& parts) {
  each_piece(stage, segment.flat, [&](const model::Piece& piece, layout::FlatRange range) {
    const auto& tensor = stage.parameters()[piece.parameter].tensor;
    auto begin = range.begin - segment.flat.begin;
    for (const auto& box : layout::boxes_of_flat_range(piece.box, range.begin - piece.flat.begin,
                                                       range.end - piece.flat.begin)) {
      const auto count = layout::element_count(box);
      parts.push_back({prefix + tensor.name, tensor.shape, box, values.slice(0, begin, count),
                       piece.primary});
      begin += count;
    }
  });
}

}  // namespace

std::vector<StatePart> Engine::state_parts() {
  std::vector<StatePart> parts;
  const auto& optimizer = *parts_->optimizer;
  for (const auto& segment : optimizer.segments()) {
    append_parts(parts_->stage, segment, "", optimizer.master(segment), parts);
    for (const auto& state : optimizer.states()) {
      append_parts(parts_->stage, segment, state.name + "/",
                   state.values.slice(0, segment.state_begin, segment.flat.size()), parts);
    }
  }
  return parts;
}

std::vector<Engine::ParameterPart> Engine::parameter_parts() {
  std::vector<ParameterPart> parts;
  for (const auto& slab : parts_->stage.slabs()) {
    for (const auto& piece : slab.pieces) {
      const auto& tensor = parts_->stage.parameters()[piece.parameter].tensor;
      const auto size = piece.flat.size();
      const auto gradient = parts_->flat_gradients
                                ? parts_->flat_gradients.slice(0, piece.flat.begin, size)
                                : Tensor{};
      parts.push_back({tensor.name, tensor.shape, piece.box,
                       parts_->flat_parameters.slice(0, piece.flat.begin, size), gradient,
                       piece.primary});
    }
  }
  return parts;
}

}  // namespace trireme::engine
