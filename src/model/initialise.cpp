#include "trireme/base/philox.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <algorithm>

namespace trireme::model {
namespace {

float initial_value(const Parameter& parameter, std::uint64_t seed, std::uint64_t stream,
                    std::int64_t element) {
  switch (parameter.initialisation) {
    case Initialisation::ones:
      return 1.0F;
    case Initialisation::zeros:
      return 0.0F;
    case Initialisation::normal:
      return parameter.deviation *
             base::philox_normal(seed, stream, static_cast<std::uint64_t>(element));
  }
  return 0.0F;
}

/// Elements [begin, end) of a piece, counted row-major inside it.
void initialise_piece(const Parameter& parameter, const Piece& piece, std::uint64_t seed,
                      layout::FlatRange part, float* out) {
  const auto stream = base::stream_of(parameter.tensor.name.c_str());
  const bool matrix = piece.box.length.size() == 2;
  const std::int64_t columns = matrix ? piece.box.length[1] : 1;
  const std::int64_t first_column = matrix ? piece.box.offset[1] : 0;
  const std::int64_t width = matrix ? parameter.tensor.shape[1] : 1;
  for (std::int64_t index = part.begin; index < part.end; ++index) {
    const std::int64_t row = piece.box.offset[0] + index / columns;
    const std::int64_t element = row * width + first_column + index % columns;
    *out++ = initial_value(parameter, seed, stream, element);
  }
}

}  // namespace

void initialise(const StageParameters& stage, std::uint64_t seed, layout::FlatRange range,
                const device::Tensor& out) {
  for (const auto& slab : stage.slabs()) {
    for (const auto& piece : slab.pieces) {
      const auto begin = std::max(range.begin, piece.flat.begin);
      const auto end = std::min(range.end, piece.flat.end);
      if (begin >= end) continue;
      initialise_piece(stage.parameters()[piece.parameter], piece, seed,
                       {begin - piece.flat.begin, end - piece.flat.begin},
                       out.f32() + (begin - range.begin));
    }
  }
}

}  // namespace trireme::model
