// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

namespace trireme::config {

/// Activations of a layer that forward may discard, for backward to compute them again.
enum class Activation : std::uint8_t {
  norms,       ///< outputs of the two norms, from the residual stream
  activation,  ///< output of SwiGLU or GELU, from its input
  attention,   ///< output of attention, from q, k and v
  mlp,         ///< both of the MLP's wide tensors: the GEMM and the activation
  layer        ///< all but the layer's input
};
inline constexpr std::size_t activation_count = 5;

/// Kinds of one layer.
class ActivationSet {
 public:
  constexpr ActivationSet() = default;
  constexpr ActivationSet(std::initializer_list<Activation> kinds) {
    for (const auto kind : kinds) add(kind);
  }
  constexpr void add(Activation kind) { bits_ |= 1U << static_cast<unsigned>(kind); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Activation kind) const {
    return (bits_ & (1U << static_cast<unsigned>(kind))) != 0;
  }

 private:
  std::uint32_t bits_ = 0;
};

/// Activations that forward discards and backward computes again
/// (train.activation_checkpointing): each kind in so many of a stage's first layers.
class Recompute {
 public:
  static constexpr int all_layers = std::numeric_limits<int>::max();

  /// Nothing.
  constexpr Recompute() = default;
  /// These in all layers.
  constexpr Recompute(std::initializer_list<Activation> kinds) {
    for (const auto kind : kinds) add(kind);
  }

  constexpr Recompute& add(Activation kind, int layers = all_layers) {
    auto& held = layers_[static_cast<std::size_t>(kind)];
    held = held < layers ? layers : held;
    return *this;
  }
  /// Kinds that the stage's layer of this number, counted from 0, discards.
  constexpr ActivationSet in_layer(int layer) const {
    ActivationSet set;
    for (std::size_t kind = 0; kind < activation_count; ++kind) {
      if (layer < layers_[kind]) set.add(static_cast<Activation>(kind));
    }
    return set;
  }
  /// Layers of a stage that discard it, `all_layers` if all do.
  constexpr int layers(Activation kind) const { return layers_[static_cast<std::size_t>(kind)]; }

  /// "norms,activation,layer:8", "none": as the key is written.
  std::string text() const;

  constexpr bool operator==(const Recompute&) const = default;

 private:
  std::array<int, activation_count> layers_{};
};

/// Entries as "norms" or "layer:8"; "none" stands alone, "selective" is attention and "full" layer.
/// The failure is a phrase: "has the entry ...".
base::Result<Recompute> parse_recompute(std::span<const std::string> entries);

}  // namespace trireme::config
