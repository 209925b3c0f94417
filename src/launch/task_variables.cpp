// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/task_variables.hpp"

#include "trireme/launch/contract.hpp"

#include <vector>

namespace trireme::launch {

std::span<const TaskVariable> task_variables() {
  static const std::vector<TaskVariable> all{
      {encoded_variable, "the submitting side", "the contract, with origins"},
      {version_variable, "the node", "version of the contract: 1"},
      {node_variable, "the node",
       "its Slurm name. Missing, or another node's: this node has no plugin, and the executable "
       "warns"},
      {directory_variable, "the node",
       "a folder of this job on this node, 0700, the user's, for 1 MiB in 256 names at most; gone "
       "after the job"},
      {record_variable, "the node",
       "how the job's tasks on this node ended, one JSON object a line"}};
  return all;
}

}  // namespace trireme::launch
