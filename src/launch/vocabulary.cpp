#include "trireme/launch/vocabulary.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"

#include <algorithm>

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

std::span<const SiteArgument> site_arguments() {
  static const std::vector<SiteArgument> all{
      {"base",
       {},
       "/var/spool/trireme",
       "where root keeps records of jobs and mounts their folders, %h being the host name. Root "
       "alone may write to it; its parent must exist"},
      {"memlock",
       {"unlimited", "keep", "none"},
       "keep",
       "how much memory tasks may lock, which RDMA does; keep leaves the site's limit. Unlimited "
       "is "
       "for sites where cgroups bound the memory of jobs (ConstrainRAMSpace)"},
      {"core",
       {"unlimited", "keep", "none"},
       "keep",
       "core files of ranks that crash: one of every rank can fill a file system"}};
  return all;
}

std::string permitted_text(const SiteArgument& argument) {
  if (argument.words.empty()) return base::format("{}=/FOLDER", argument.name);
  return base::format("{}={}", argument.name, base::join(argument.words, "|"));
}

bool is_site_argument(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  for (const auto& argument : site_arguments()) {
    if (argument.name != name) continue;
    if (argument.words.empty()) return value.starts_with("/");
    return std::find(argument.words.begin(), argument.words.end(), value) != argument.words.end();
  }
  return false;
}

}  // namespace trireme::launch
