// SPDX-License-Identifier: Apache-2.0
#include "rotary.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace trireme::layers {
namespace {

float stretched(const model::RopeScaling& rope, float frequency) {
  const auto factor = static_cast<float>(rope.factor);
  switch (rope.kind) {
    case model::RopeScalingKind::none:
      return frequency;
    case model::RopeScalingKind::linear:
      return frequency / factor;
    case model::RopeScalingKind::llama3:
      break;
  }
  const auto original = static_cast<float>(rope.original_max_position_embeddings);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

void fill(const model::ModelConfig& config, const RotaryTables& tables) {
  const std::int64_t pairs = config.head_dim / 2;
  std::vector<float> frequencies(static_cast<std::size_t>(pairs));
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(config.head_dim);
    const float frequency = 1.0F / std::pow(static_cast<float>(config.rope_theta), exponent);
    frequencies[static_cast<std::size_t>(pair)] = stretched(config.rope_scaling, frequency);
  }
  for (std::int64_t position = 0; position < tables.cosines.dim(0); ++position) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const float angle =
          static_cast<float>(position) * frequencies[static_cast<std::size_t>(pair)];
      tables.cosines.f32()[position * pairs + pair] = std::cos(angle);
      tables.sines.f32()[position * pairs + pair] = std::sin(angle);
    }
  }
}

}  // namespace

RotaryTables make_rotary_tables(const StageContext& context, std::int64_t positions,
                                device::Arena& arena) {
  const auto& config = context.config;
  const auto table = [&] {
    return arena.allocate(device::DType::f32, {positions, config.head_dim / 2});
  };
  const RotaryTables tables{table(), table()};
  if (arena.is_measuring()) return tables;
  device::HostMirror mirror(context.kernels.device());
  fill(config, {mirror.of(tables.cosines), mirror.of(tables.sines)});
  mirror.store();
  return tables;
}

}  // namespace trireme::layers
