// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/cli/command.hpp"

#include <vector>

namespace trireme::apps {

Command bench_command();
Command bench_comm_command();
Command bench_gemm_command();
Command bench_io_command();
Command checkpoint_command();
Command checkpoint_diff_command();
Command checkpoint_export_command();
Command checkpoint_import_command();
Command checkpoint_list_command();
Command checkpoint_prune_command();
Command checkpoint_forget_nodes_command();
Command checkpoint_tag_command();
Command compare_command();
Command completion_command();
Command config_command();
Command data_command();
Command eval_command();
Command layout_command();
Command man_command();
Command ownership_command();
Command plan_command();
Command preflight_command();
Command generate_command();
Command graph_command();
Command probe_command();
Command profile_command();
Command report_command();
Command runs_command();
Command tokenizer_command();
Command topology_command();
Command trace_command();
Command track_command();
Command train_command();
Command watch_command();
Command why_command();

/// All commands, in the order in which help shows them.
std::vector<Command> commands();

}  // namespace trireme::apps
