// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/commands.hpp"

namespace trireme::apps {

std::vector<Command> commands() {
  return {
      train_command(),     eval_command(),      generate_command(),   probe_command(),
      tokenizer_command(), data_command(),      checkpoint_command(), config_command(),
      layout_command(),    ownership_command(), plan_command(),       preflight_command(),
      topology_command(),  why_command(),       runs_command(),       watch_command(),
      compare_command(),   report_command(),    profile_command(),    trace_command(),
      track_command(),     graph_command(),     bench_command(),      completion_command(),
      man_command(),
  };
}

}  // namespace trireme::apps
