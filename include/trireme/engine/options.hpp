#pragma once

#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

namespace trireme::engine {

/// The arrangement that the keys of section `parallel` ask for on this many ranks; the
/// data-parallel degree fills what is left when it is `auto`.
base::Result<layout::Mesh> mesh_from(const config::Config& config, int world_size);

/// The type of parameters and activations that `numerics.precision` means.
device::DType compute_type(const config::Config& config);

/// What the configuration means for one rank, checked: every failure names key, value and rule.
base::Result<EngineOptions> options_from(const config::Config& config,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank);

}  // namespace trireme::engine
