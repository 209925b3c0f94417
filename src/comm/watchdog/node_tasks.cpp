// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/node_tasks.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"

#include "comm/watchdog/watched_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

namespace trireme::comm {
namespace {

namespace fs = std::filesystem;

/// Launcher's variables of a process. Read from /proc for other processes and for this one alike.
struct Marks {
  std::string launch;
  int rank = -1;
  std::optional<int> world;
  std::optional<int> on_node;
};

std::optional<Marks> marks_of(const fs::path& process) {
  const auto text = base::read_text_file(process / "environ");
  if (!text.ok()) return std::nullopt;
  Marks marks;
  std::string_view left = *text;
  while (!left.empty()) {
    const auto entry = left.substr(0, left.find('\0'));
    left.remove_prefix(std::min(left.size(), entry.size() + 1));
    const auto value = entry.substr(std::min(entry.size(), entry.find('=') + 1));
    if (entry.starts_with("PMIX_NAMESPACE=")) marks.launch = value;
    if (entry.starts_with("PMIX_RANK=")) marks.rank = base::number_in<int>(value).value_or(-1);
    if (entry.starts_with("OMPI_COMM_WORLD_SIZE=")) marks.world = base::number_in<int>(value);
    if (entry.starts_with("OMPI_COMM_WORLD_LOCAL_SIZE="))
      marks.on_node = base::number_in<int>(value);
  }
  if (marks.launch.empty() || marks.rank < 0) return std::nullopt;
  return marks;
}

std::string program_of(const fs::path& process) {
  std::error_code error;
  return fs::read_symlink(process / "exe", error).string();
}

}  // namespace

NodeTasks NodeTasks::look() {
  const fs::path own = "/proc/self";
  const auto mine = marks_of(own);
  if (!mine) return {{}, -1, std::nullopt, Extent::node_of_many};
  const auto program = program_of(own);
  std::map<int, Task> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto number = base::number_in<int>(entry.path().filename().string());
    if (!number) continue;
    // Exclusion: a script that started the rank has the same variables.
    if (program_of(entry.path()) != program) continue;
    const auto marks = marks_of(entry.path());
    if (marks && marks->launch == mine->launch) {
      found[marks->rank] = {marks->rank, *number, process_state(*number)};
    }
  }
  std::vector<Task> tasks;
  for (const auto& [rank, task] : found) tasks.push_back(task);
  const bool whole = mine->world && mine->world == mine->on_node;
  return {std::move(tasks), mine->rank, mine->on_node,
          whole ? Extent::whole_world : Extent::node_of_many};
}

NodeTasks::NodeTasks(std::vector<Task> tasks, int self, std::optional<int> expected, Extent extent)
    : tasks_(std::move(tasks)), self_(self), expected_(expected), extent_(extent) {
  std::sort(tasks_.begin(), tasks_.end(),
            [](const Task& one, const Task& other) { return one.rank < other.rank; });
}

bool NodeTasks::speaks_for_node() const {
  const auto first = std::find_if(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.state != 'T' && task.state != 'Z';
  });
  return first == tasks_.end() || first->rank == self_;
}

std::vector<int> NodeTasks::missing() const {
  std::vector<int> ranks;
  if (extent_ != Extent::whole_world) return ranks;
  for (int rank = 0; rank < expected_.value_or(0); ++rank) {
    const bool there = std::any_of(tasks_.begin(), tasks_.end(),
                                   [&](const Task& task) { return task.rank == rank; });
    if (!there) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<NodeTasks::Task> NodeTasks::halted() const {
  std::vector<Task> halted;
  std::copy_if(tasks_.begin(), tasks_.end(), std::back_inserter(halted), [](const Task& task) {
    return task.state == 'T' || task.state == 'Z' || task.state == 'D';
  });
  return halted;
}

std::string NodeTasks::text() const {
  if (self_ < 0) return "the launcher does not say who else is there";
  std::vector<std::string> parts;
  for (const auto& task : halted()) {
    const char* const what = task.state == 'T'   ? "stopped by a signal"
                             : task.state == 'Z' ? "dead"
                                                 : "held by the kernel, perhaps by a file system";
    parts.push_back(base::format("rank {} (process {}) is {}", task.rank, task.process, what));
  }
  const auto gone = missing();
  for (const int rank : gone) {
    parts.push_back(base::format("rank {} is not there: it has ended or never started", rank));
  }
  const auto here = static_cast<int>(tasks_.size());
  const int expected = expected_.value_or(here);
  if (gone.empty() && expected > here) {
    parts.push_back(
        base::format("{} of the {} ranks of this node are not there", expected - here, expected));
  }
  if (!parts.empty()) return base::format("{}", base::join(parts, ", "));
  return base::format(
      "all {} ranks of this node are there, so look at the nodes that do not say this, and at the "
      "network between them",
      here);
}

int NodeTasks::suspect() const {
  const auto gone = missing();
  const auto stopped = halted();
  if (!stopped.empty() && (gone.empty() || stopped.front().rank < gone.front())) {
    return stopped.front().rank;
  }
  return gone.empty() ? self_ : gone.front();
}

}  // namespace trireme::comm
