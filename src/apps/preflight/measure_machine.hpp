// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/runtime/cluster.hpp"

#include <filesystem>

/// Numbers of a machine file, measured by all ranks at once.
namespace trireme::apps {

/// Machine of ranks that compute on cores, before anything is measured: what follows from the
/// node's description, and assumptions, each with its source.
predict::Machine cores_machine(int cores);

/// Collective over all ranks, as each of the following. What is measured replaces the machine's
/// value, and says so as its source. Rates are those of a GPU, or of all ranks of a node of cores
/// together, in the fastest of some repeats.
void measure_products(runtime::Cluster& cluster, device::Kernels& kernels,
                      predict::Machine& machine);
void measure_passes(runtime::Cluster& cluster, device::Kernels& kernels, predict::Machine& machine);
/// Messages in the node, and between nodes where there are two; of one rank none are measured.
/// Takes the groups of tensor parallelism, which lie in nodes, and of data parallelism.
void measure_links(runtime::Cluster& cluster, device::Kernels& kernels, predict::Machine& machine);
/// Writes into the folder, and removes what it wrote.
void measure_disk(runtime::Cluster& cluster, const std::filesystem::path& folder,
                  predict::Machine& machine);

}  // namespace trireme::apps
