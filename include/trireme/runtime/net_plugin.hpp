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
  /// This program's libnccl-net-trireme.so; empty without, or with a path too long for NCCL.
  std::string own;
  /// Whether the UCX that it finds can move the memory of GPUs.
  bool own_moves_gpu_memory = false;
};

/// Without loading any: the UCX of one must not become that of MPI. `root` ("/") stands before the
/// system's folders, for tests.
NetPlugins find_net_plugins(const base::Environment& environment,
                            const std::filesystem::path& executable,
                            const std::filesystem::path& root = "/");

/// Which of them NCCL uses (docs/decisions/0021): the site's over UCX, else NCCL's own verbs. What
/// the user has set is left out, and NCCL_NET or NCCL_NET_PLUGIN settle all of it;
/// NCCL_NET_PLUGIN=trireme is this program's, by its path, where it moves the memory of GPUs.
std::vector<EnvironmentSetting> plugin_settings(const NetPlugins& plugins,
                                                const base::Environment& environment);

}  // namespace trireme::runtime
