// What an engine holds, as boxes of logical tensors.
#include "state.hpp"

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
      parts.push_back(
          {prefix + tensor.name, tensor.shape, box, values.slice(0, begin, count), piece.primary});
      begin += count;
    }
  });
}

}  // namespace

std::vector<StatePart> Engine::state_parts() {
  std::vector<StatePart> parts;
  const auto& optimizer = parts_->updates();
  for (const auto& segment : optimizer.segments()) {
    append_parts(parts_->stage, segment, "", optimizer.master(segment), parts);
    for (const auto& state : optimizer.states()) {
      append_parts(parts_->stage, segment, state.name + "/",
                   state.values.slice(0, segment.state_begin, segment.flat.size()), parts);
    }
  }
  return parts;
}

std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const Tensor& parameters, const Tensor& gradients) {
  std::vector<ParameterPart> parts;
  for (const auto& slab : stage.slabs()) {
    for (const auto& piece : slab.pieces) {
      const auto& tensor = stage.parameters()[piece.parameter].tensor;
      const auto size = piece.flat.size();
      parts.push_back(
          {tensor.name, tensor.shape, piece.box, parameters.slice(0, piece.flat.begin, size),
           gradients ? gradients.slice(0, piece.flat.begin, size) : Tensor{}, piece.primary});
    }
  }
  return parts;
}

std::vector<ParameterPart> Engine::parameter_parts() {
  return engine::parameter_parts(parts_->stage, parts_->flat_parameters, parts_->flat_gradients);
}

}  // namespace trireme::engine
