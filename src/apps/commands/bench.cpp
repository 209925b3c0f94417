// SPDX-License-Identifier: Apache-2.0
// trireme bench
#include "apps/cli/commands.hpp"

namespace trireme::apps {

Command bench_command() {
  return {.name = "bench",
          .summary = "Measures the machine's own limits, as this program sees them",
          .group = "Explanations",
          .subcommands = {bench_comm_command(), bench_gemm_command(), bench_io_command()}};
}

}  // namespace trireme::apps
