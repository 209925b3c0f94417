// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mpi/training/training.hpp"

#include <vector>

namespace trireme::testing {

/// A model in FP8 whose matrices two and four ranks can share in multiples of 16, in batches of
/// eight micro-batches.
engine::EngineOptions options_in_fp8(model::Architecture architecture, const layout::Mesh& mesh);

/// One axis alone for two ranks, tensor parallelism with another for four; else none.
std::vector<layout::Mesh> meshes_for_fp8();

}  // namespace trireme::testing
