// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/philox.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <algorithm>
#include <thread>
#include <vector>

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

/// Elements [begin, end) of a shard piece, counted row-major inside it.
void initialise_part(const Parameter& parameter, const ShardPiece& piece, std::uint64_t seed,
                     layout::FlatRange part, float* out) {
  const auto stream = base::stream_of(parameter.tensor.name);
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

/// Initialises by all CPUs that this thread may use: a normal number takes some 40 ns, a minute for
/// a model of 1.5 billion. Each element's number depends on its place alone, not on who computes
/// it.
void initialise_piece(const Parameter& parameter, const ShardPiece& piece, std::uint64_t seed,
                      layout::FlatRange part, float* out) {
  constexpr std::int64_t worth_a_thread = std::int64_t{1} << 18;
  const auto cpus = std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
  const auto threads = std::clamp<std::int64_t>(part.size() / worth_a_thread, 1, cpus);
  const auto share = (part.size() + threads - 1) / threads;
  const auto of_thread = [&](std::int64_t number) {
    const auto begin = std::min(part.begin + number * share, part.end);
    const auto end = std::min(begin + share, part.end);
    initialise_part(parameter, piece, seed, {begin, end}, out + (begin - part.begin));
  };
  std::vector<std::jthread> others;
  for (std::int64_t number = 1; number < threads; ++number) others.emplace_back(of_thread, number);
  of_thread(0);
}

}  // namespace

void initialise(const StageParameters& stage, std::uint64_t seed, layout::FlatRange range,
                const device::Tensor& out) {
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
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
