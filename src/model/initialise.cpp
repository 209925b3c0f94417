#include "trireme/base/philox.hpp"
#include "trireme/model/stage_parameters.hpp"

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

void write(const device::Tensor& flat, std::int64_t index, float value) {
  if (flat.dtype() == device::DType::f32) {
    flat.f32()[index] = value;
  } else {
    flat.bf16()[index] = device::to_bf16(value);
  }
}

void initialise_piece(const Parameter& parameter, const Piece& piece, std::uint64_t seed,
                      const device::Tensor& flat) {
  const auto stream = base::stream_of(parameter.tensor.name.c_str());
  const bool matrix = piece.box.length.size() == 2;
  const std::int64_t columns = matrix ? piece.box.length[1] : 1;
  const std::int64_t first_column = matrix ? piece.box.offset[1] : 0;
  const std::int64_t width = matrix ? parameter.tensor.shape[1] : 1;
  for (std::int64_t row = 0; row < piece.box.length[0]; ++row) {
    const std::int64_t begin = (piece.box.offset[0] + row) * width + first_column;
    for (std::int64_t column = 0; column < columns; ++column) {
      write(flat, piece.flat.begin + row * columns + column,
            initial_value(parameter, seed, stream, begin + column));
    }
  }
}

}  // namespace

void initialise(const StageParameters& stage, std::uint64_t seed, const device::Tensor& flat) {
  for (const auto& slab : stage.slabs()) {
    for (const auto& piece : slab.pieces) {
      initialise_piece(stage.parameters()[piece.parameter], piece, seed, flat);
    }
  }
}

}  // namespace trireme::model
