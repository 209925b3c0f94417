// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/track/exposition.hpp"

#include "rows.hpp"

namespace trireme::track {

/// The newest number of each metric, in base units, by its name in Prometheus.
void note_newest(std::span<const Row> rows, base::Json& newest);
/// Those numbers, and whether the run is running.
void add_newest(const RunFacts& run, const base::Json& newest, Exposition& exposition);

}  // namespace trireme::track
