// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/layout/parallel_rules.hpp"

namespace trireme::config {

/// Arrangement of ranks that the keys give. The world size is not among them, and what is `auto` is
/// not known here.
layout::ParallelArrangement arrangement(const Options& options);
/// The same, without what is still to be chosen.
layout::ParallelArrangement arrangement(const Config& config);

/// Ranks of one replica, or of as many as parallel.data asks for; the largest number where there
/// are more.
std::int64_t least_world(const Config& config);

/// Quantities as errors about keys cite them: "parallel.tensor = 3 (a.conf:4)". The configuration
/// must live as long.
layout::Citation citation(const Config& config, const layout::ParallelArrangement& arrangement);

}  // namespace trireme::config
