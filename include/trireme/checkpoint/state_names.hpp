// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"

#include <optional>
#include <string_view>

namespace trireme::checkpoint {

/// Moments have a purpose before their name ("adamw.first_moment/..."); masters do not.
inline bool is_moment(std::string_view name) {
  return name.find('/') != std::string_view::npos;
}

/// Name in a manifest's state of the loss on held-out data after its step, where it was evaluated.
inline constexpr const char* validation_loss_name = "validation_loss";

inline std::optional<double> validation_loss(const Manifest& manifest) {
  const auto& state = manifest.state;
  if (!state.is_object()) return std::nullopt;
  const auto found = state.find(validation_loss_name);
  if (found == state.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// Value of `state.optimizer` in a manifest that has only parameters.
inline constexpr const char* fresh_optimizer = "fresh";

inline bool has_fresh_optimizer(const Manifest& manifest) {
  const auto& state = manifest.state;
  return state.is_object() && state.contains("optimizer") && state["optimizer"] == fresh_optimizer;
}

}  // namespace trireme::checkpoint
