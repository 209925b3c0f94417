// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/config/options.hpp"

#include <filesystem>
#include <optional>

namespace trireme::train {

/// Collective over the world. Opens the folders of a run in the storage of each node
/// (checkpoint.local_directory); nothing without that key. Throws AgreedError (checkpoint): a
/// folder cannot be made; several nodes have the same.
std::optional<checkpoint::NodeTier> open_node_tier(const config::CheckpointOptions& keys,
                                                   const std::filesystem::path& run,
                                                   comm::ProcessGroup& world);

}  // namespace trireme::train
