// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/layout/arrange.hpp"

#include <optional>

namespace trireme::engine {

/// Mesh of the configured degrees on this many ranks. The failure proposes degrees that the model
/// and the batch allow, too.
base::Result<layout::Mesh> mesh_from(const config::Config& config, const model::ModelConfig& model,
                                     int world_size);

/// Parallel arrangement of this configuration and model, as far as it is known.
layout::ParallelArrangement arrangement_of(const config::Config& config,
                                           const model::ModelConfig& model);

/// Type of parameters and activations for `numerics.precision`.
device::DType compute_type(const config::NumericsOptions& numerics);

/// Attention kernels of GPUs; nothing where CPUs compute.
std::optional<device::AttentionChoice> gpu_attention(const config::NumericsOptions& numerics);

/// GPU attention kernels exist for the heads of this model. options_from() checks this too; this
/// function needs no mesh.
base::Status check_attention(const config::Options& keys, const model::ModelConfig& model);

/// The same of values that no file says: whose rules name keys alone.
layout::ParallelArrangement arrangement_of(const config::Options& keys,
                                           const model::ModelConfig& model);

/// Options of one rank by the configuration, checked: every failure names key, value and rule.
base::Result<EngineOptions> options_from(const config::Config& config,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank);

base::Result<EngineOptions> options_from(const config::Options& keys,
                                         const model::ModelConfig& model, const layout::Mesh& mesh,
                                         base::Rank rank);

}  // namespace trireme::engine
