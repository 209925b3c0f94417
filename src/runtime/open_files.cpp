// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace trireme::runtime {
namespace {

/// Limit: programs that close every possible descriptor after a fork, as mpirun's helpers do, take
/// minutes where the hard limit is a billion.
constexpr rlim_t most_open_files = 65536;

}  // namespace

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = std::min(limit.rlim_max, most_open_files);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace trireme::runtime
