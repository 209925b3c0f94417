// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trireme::comm {

/// The tasks of this launch on this node as /proc shows them: for words about ranks that cannot be
/// asked because MPI does not work yet, or not any more.
class NodeTasks {
 public:
  struct Task {
    int rank = -1;
    int process = -1;
    /// proc(5): 'T' stopped, 'D' in the kernel, 'Z' ended.
    char state = '?';
  };

  /// Reads the launcher's marks of this process and of all others of this user.
  static NodeTasks look();
  /// `tasks` in any order; `expected`: how many the launcher started on this node, and whether
  /// these are all of the world.
  enum class Extent { node_of_many, whole_world };
  NodeTasks(std::vector<Task> tasks, int self, std::optional<int> expected, Extent extent);

  /// What the launcher calls this process; -1 where it does not.
  int self() const { return self_; }
  /// Whether this is the lowest rank of the node that can speak.
  bool speaks_for_node() const;
  /// Who is missing or stopped, or that all of this node are here.
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
