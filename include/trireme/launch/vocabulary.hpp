#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Names that are neither options nor keys: what the launch leaves in a task's environment, and
/// what a site may write behind the plugin in plugstack.conf. Manual pages, documents and the
/// plugin's own checks are made from these tables.
namespace trireme::launch {

/// Options of tmpfs for a job's folder on a node. It is for links and notes; what is larger belongs
/// where the site counts it.
inline constexpr std::string_view job_folder_limits = "size=1m,nr_inodes=256,mode=0700";

/// A variable that is not asked for but found.
struct TaskVariable {
  std::string_view variable;
  std::string_view set_by;
  std::string_view says;
};
std::span<const TaskVariable> task_variables();

/// One NAME=VALUE of the plugin's line in plugstack.conf.
struct SiteArgument {
  std::string_view name;
  /// Words that are values; empty where it is a folder.
  std::vector<std::string_view> words;
  std::string_view standard;
  std::string_view meaning;
};
std::span<const SiteArgument> site_arguments();

/// "memlock=unlimited|keep|none", "base=/FOLDER".
std::string permitted_text(const SiteArgument& argument);

/// NAME=VALUE of the table: a known name with one of its words, or with a path from the root down.
bool is_site_argument(std::string_view text);

}  // namespace trireme::launch
