// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/parallel_rules.hpp"

namespace trireme::layout {

/// Mesh pp x dp x tp in the default order, on exactly `world_size` ranks. Degrees that are not
/// given are 1, and data parallelism takes what the others leave. Only the degrees are checked: the
/// rest of the arrangement decides which others the failure (ExitCode::launch) proposes.
base::Result<Mesh> arrange(ParallelArrangement arrangement, int world_size);

/// The reverse of arrange(): adds the ranks and the degrees of a mesh.
void describe(const Mesh& mesh, ParallelArrangement& arrangement);

}  // namespace trireme::layout
