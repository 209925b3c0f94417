// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/net_plugin.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/text.hpp"

#include <array>

namespace trireme::runtime {
namespace {

namespace fs = std::filesystem;
using base::Environment;

/// Value of NCCL_NET_PLUGIN that selects this program's plugin.
constexpr std::string_view own_name = "trireme";
/// Longest name that NCCL does not truncate.
constexpr std::size_t longest_name = 254;
constexpr std::size_t largest_cache = std::size_t{64} << 20;
constexpr std::array system_folders{"lib64", "usr/lib64", "lib", "usr/lib",
                                    "usr/lib/x86_64-linux-gnu"};

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Path of this file in the system loader's cache, whose paths are zero-terminated.
fs::path in_loader_list(const std::string& file, const fs::path& root) {
  const auto list =
      base::read_text_file(root / "etc/ld.so.cache", base::ExitCode::topology, largest_cache);
  if (!list.ok()) return {};
  const auto name = "/" + file + '\0';
  for (auto end = list->find(name); end != std::string::npos; end = list->find(name, end + 1)) {
    const auto zero = list->rfind('\0', end);
    const auto begin = zero == std::string::npos ? 0 : zero + 1;
    const fs::path path(list->substr(begin, end + name.size() - 1 - begin));
    if (path.is_absolute() && is_file(root / path.relative_path())) return path;
  }
  return {};
}

/// Path that the loader would find for a library's name; empty when it finds none.
fs::path find_library(const std::string& file, const Environment& environment,
                      const fs::path& root) {
  const auto search_path = environment.get("LD_LIBRARY_PATH").value_or("");
  for (const auto folder : base::split(search_path, ':')) {
    const auto path = fs::path(folder) / file;
    if (!folder.empty() && is_file(path)) return path;
  }
  if (auto listed = in_loader_list(file, root); !listed.empty()) {
    return root / listed.relative_path();
  }
  for (const auto* const folder : system_folders) {
    const auto path = root / folder / file;
    if (is_file(path)) return path;
  }
  return {};
}

/// True if UCX has a module for GPU memory; modules lie in a folder beside its libraries.
bool ucx_moves_gpu_memory(const Environment& environment, const fs::path& root) {
  const auto ucx = find_library("libucp.so.0", environment, root);
  if (ucx.empty()) return false;
  const auto modules = ucx.parent_path() / "ucx";
  return is_file(modules / "libuct_cuda.so.0") || is_file(modules / "libuct_cuda.so");
}

std::string own_plugin(const fs::path& executable) {
  const auto prefix = executable.parent_path().parent_path();
  for (const auto* const folder : {"lib", "lib64", "lib/x86_64-linux-gnu"}) {
    const auto path = prefix / folder / "libnccl-net-trireme.so";
    if (is_file(path) && path.string().size() <= longest_name) return path.string();
  }
  return {};
}

}  // namespace

NetPlugins find_net_plugins(const Environment& environment, const fs::path& executable,
                            const fs::path& root) {
  NetPlugins plugins;
  plugins.sites = find_library("libnccl-net.so", environment, root).string();
  plugins.own = own_plugin(executable);
  plugins.own_moves_gpu_memory = !plugins.own.empty() && ucx_moves_gpu_memory(environment, root);
  return plugins;
}

std::vector<EnvironmentSetting> plugin_settings(const NetPlugins& plugins,
                                                const Environment& environment) {
  if (environment.get("NCCL_NET_PLUGIN") == own_name && !environment.has("NCCL_NET")) {
    if (plugins.own.empty() || !plugins.own_moves_gpu_memory) return {};
    return {
        {"NCCL_NET_PLUGIN", plugins.own, "the plugin over UCX that was asked for, by its path"}};
  }
  if (environment.has("NCCL_NET") || environment.has("NCCL_NET_PLUGIN")) return {};
  if (!plugins.sites.empty()) {
    // Variable of the rdma-sharp plugin; other plugins ignore it.
    if (environment.has("NCCL_PLUGIN_P2P")) return {};
    return {{"NCCL_PLUGIN_P2P", "ucx", "the site's network plugin over UCX"}};
  }
  return {};
}

}  // namespace trireme::runtime
