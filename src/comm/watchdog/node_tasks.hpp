// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trireme::comm {

/// Tasks of this launch on this node, from /proc: for messages about ranks that cannot be reached
/// because MPI does not work yet, or no longer.
class NodeTasks {
 public:
  struct Task {
    int rank = -1;
    int process = -1;
    /// proc(5): 'T' stopped, 'D' in the kernel, 'Z' ended.
    char state = '?';
  };

  /// Reads the launcher's variables of this process and of all others of this user.
  static NodeTasks look();
  /// `tasks` in any order; `expected`: how many the launcher started on this node, and whether
  /// these are all of the world.
  enum class Extent { node_of_many, whole_world };
  NodeTasks(std::vector<Task> tasks, int self, std::optional<int> expected, Extent extent);

  /// Launcher's number of this process; -1 if it has none.
  int self() const { return self_; }
  /// True if this is the lowest rank of the node that is able to report.
  bool speaks_for_node() const;
  /// Text that lists the missing and stopped ranks, or states that all of this node are here.
  std::string text() const;
  /// The first rank that is missing or stopped; this one when there is none.
  int suspect() const;

 private:
  std::vector<int> missing() const;
  std::vector<Task> halted() const;

  std::vector<Task> tasks_;
  int self_;
  std::optional<int> expected_;
  Extent extent_;
};

}  // namespace trireme::comm
