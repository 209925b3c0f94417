// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

/// Variables that the launch leaves in a task's environment beside those of its options. Manual
/// pages and documents are made from this table.
namespace trireme::launch {

/// Options of tmpfs for a job's folder on a node. It is for links and short files; larger data
/// belong to file systems with quotas.
inline constexpr std::string_view job_folder_limits = "size=1m,nr_inodes=256,mode=0700";

/// Variable that reports a fact to the tasks and sets no option.
struct TaskVariable {
  std::string_view variable;
  std::string_view set_by;
  std::string_view says;
};
std::span<const TaskVariable> task_variables();

}  // namespace trireme::launch
