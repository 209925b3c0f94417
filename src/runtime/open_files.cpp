// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/open_files.hpp"

#include "trireme/base/format.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace trireme::runtime {
namespace {

/// Limit: programs that close every possible descriptor after a fork, as mpirun's helpers do, take
/// minutes where the hard limit is a billion.
constexpr rlim_t most_open_files = 65536;
/// Files of a rank beside connections to its peers: logs, data, checkpoints, libraries.
constexpr rlim_t other_files = 256;

}  // namespace

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = std::min(limit.rlim_max, most_open_files);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string open_files_shortage(int peers) {
  rlimit limit{};
  const auto needed = static_cast<rlim_t>(peers) + other_files;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return base::format(
      "a rank may open {} files and needs about {} where MPI uses TCP (each exchanges data with {} "
      "others, which takes a connection each); raise the hard limit of open files (LimitNOFILE of "
      "slurmd, ulimit -Hn), or divide the ranks over more axes",
      limit.rlim_cur, needed, peers);
}

}  // namespace trireme::runtime
