// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/runtime/library_environment.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::runtime {

/// Network plugins that NCCL could load on this node.
struct NetPlugins {
  /// The site's libnccl-net.so, which NCCL finds by itself; empty without.
  std::string sites;
  /// Path of this program's libnccl-net-trireme.so; empty without it, or if too long for NCCL.
  std::string own;
  /// True if the UCX that this plugin finds can move the memory of GPUs.
  bool own_moves_gpu_memory = false;
};

/// Finds plugins without loading them: the UCX of one must not become that of MPI. `root` ("/")
/// precedes the system's folders, for tests.
NetPlugins find_net_plugins(const base::Environment& environment,
                            const std::filesystem::path& executable,
                            const std::filesystem::path& root = "/");

/// Plugin that NCCL uses (docs/decisions/0021): the site's over UCX, else NCCL's own verbs.
/// Variables that the user has set are left out, and NCCL_NET or NCCL_NET_PLUGIN of the user's
/// suppress all; NCCL_NET_PLUGIN=trireme selects this program's, by its path, where it moves the
/// memory of GPUs.
std::vector<EnvironmentSetting> plugin_settings(const NetPlugins& plugins,
                                                const base::Environment& environment);

}  // namespace trireme::runtime
