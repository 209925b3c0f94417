// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/peer_error.hpp"
#include "trireme/comm/process_group.hpp"

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trireme::comm {

class ProgressEngine;

enum class Backend {
  automatic,  ///< shared memory when all members are on one node, else MPI messages
  mpi,
  shared,
  library,  ///< the MPI library's own blocking collectives, to measure against
};
/// "auto", "mpi", "shared", "library".
const char* name(Backend backend);

/// Store instructions with which ranks write shared memory that a peer reads next. Non-temporal
/// stores are twice as fast where the two share no cache, and slower where they do.
enum class Stores {
  measured,  ///< both kinds are timed when the group is made; all members use the faster
  ordinary,
  streaming
};

struct GroupOptions {
  Backend backend = Backend::automatic;
  /// Deadline of every wait.
  double timeout_seconds = 600;
  Stores stores = Stores::measured;
};

/// Process under the launcher's number, with the text that it sent before ranks were numbered.
struct LaunchedProcess {
  std::string node;
  std::string word;
};

/// Mapping of processes to ranks; the launcher's order unless `order` is set.
struct Numbering {
  /// Text of this process for `order`, at most longest_word bytes; a longer one is sent as empty.
  std::string word;
  /// Permutation that gives the process of each rank. Is called on the launcher's first process,
  /// with all processes in the launcher's order; a result that is not a permutation is ignored.
  std::function<std::vector<int>(const std::vector<LaunchedProcess>&)> order;

  static constexpr std::size_t longest_word = 511;
};

/// Ranks that report a failed run on stderr.
enum class Voice {
  every_rank,  ///< each failed for a reason of its own
  first_rank   ///< all failed alike: rank 0 reports, the others write to their logs
};

/// Failure of a rank, as on_failure()'s listener gets it.
struct RankFailure {
  base::ExitCode code = base::ExitCode::internal;
  /// Error on this rank: "all_reduce number 7 of process group 'dp' cannot finish: …".
  std::string text;
  /// Root cause: "rank 3 (process 4711 on n2) died …".
  std::string cause;
  /// Rank that failed first, as far as this one has been notified; itself when no other failed.
  base::Rank first;
  std::string host;
  /// Launcher's number of the rank in `first` (Slurm's task): the same number unless ranks were
  /// reordered; -1 when it is not known.
  int first_task = -1;
  /// Operation and group when a collective failed.
  Absence absence;
  Voice voice = Voice::every_rank;
  /// Number of ranks that failed alike, where voice is first_rank.
  int failed_count = 1;
  /// The room of the source that failed: "config".
  std::string room = "runtime";
  /// True on the first rank of its node that reports it, and on all where they do not see each
  /// other: one of a node's ranks writes files.
  bool is_first_of_node = true;
};

struct StartOptions {
  Numbering numbering = {};
  /// Deadline for MPI's own calls that wait for all ranks (MPI_Init, communicators, first
  /// connections, MPI_Finalize), which have none. At the deadline this rank ends (exit code 5; in
  /// MPI_Finalize that of the run) and logs the call, the host, and the ranks of this node that are
  /// missing. Zero or less: none.
  double timeout_seconds = 300;
};

/// Numbers that a rank shows to its node; their meaning is the publisher's.
using PublishedNumbers = std::array<double, 8>;

/// Owner of MPI: starts it, numbers this rank, makes process groups, and finalizes it. One per
/// process, on the thread that will communicate; outlives the groups.
class MpiRuntime {
 public:
  /// Throws base::Error (ExitCode::launch) when MPI gives less than MPI_THREAD_FUNNELED.
  explicit MpiRuntime(const StartOptions& options = {});
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;
  /// Finalizes, but not while unwinding: peers may be waiting elsewhere.
  ~MpiRuntime();

  /// Seconds that this object took to start, and MPI_Init alone.
  double start_seconds() const { return start_seconds_; }
  double init_seconds() const { return init_seconds_; }

  base::Rank world_rank() const;
  int world_size() const;
  /// The launcher's number of a rank: another one where Numbering::order changed it.
  int task_of(base::Rank rank) const;
  /// Rank of the launcher's first process, which has called Numbering::order.
  base::Rank first_process() const;
  /// Position among the ranks of this node, and their number.
  base::LocalRank local_rank() const;
  int local_size() const;
  /// World ranks of this node, by local rank.
  std::vector<base::Rank> node_ranks() const;
  /// Position of this node in the order of each node's lowest rank, and the number of nodes.
  base::NodeRank node_rank() const;
  int node_count() const;
  /// Host name, as MPI gives it.
  const std::string& node_name() const;

  /// Collective over `ranks` (world ranks by position, this one among them) and no others.
  /// Host-blocking: yes. PeerError names the members that did not come.
  std::unique_ptr<ProcessGroup> make_group(std::string name, std::vector<base::Rank> ranks,
                                           const GroupOptions& options = {});
  /// Group of all ranks; see make_group().
  std::unique_ptr<ProcessGroup> make_world(const GroupOptions& options = {});

  /// Operation that this rank waits in, as its neighbours read it: "waiting in barrier number 3 of
  /// process group 'dp'". Empty while it computes, and on a rank without neighbours. From any
  /// thread.
  std::string activity() const;

  /// Shows numbers of this rank to its node, in shared memory: costs stores alone. From any thread.
  void publish(const PublishedNumbers& numbers);
  /// The numbers that a rank of this node has published last; zeros before, and of others where the
  /// node has no shared memory. From any thread.
  PublishedNumbers published(base::LocalRank rank) const;

  /// Progress engine of all operations of this process, for groups of this room.
  ProgressEngine& progress();

  /// Listener that is called once in a failed run, before this rank ends and after its peers have
  /// been notified; must not communicate. Its exceptions are logged.
  void on_failure(std::function<void(const RankFailure&)> listener);

  /// Runs the program; returns its exit code. An uncaught exception is logged and ends this rank
  /// with its code, and the peers are notified at once instead of hanging. Only an AgreedError,
  /// which all ranks throw together, lets MPI finalize in good order.
  template <typename F>
  base::ExitCode run(F&& body) {
    try {
      return note_end(std::forward<F>(body)());
    } catch (...) {
      return end_in_failure(std::current_exception());
    }
  }

  /// Runs a part of run()'s body whose objects hold threads: what it throws is announced and logged
  /// before they are destroyed, which may take as long as a file system likes, and this rank ends
  /// within seconds whatever they wait for. Rethrows.
  template <typename F>
  auto announcing(F&& part) {
    try {
      return std::forward<F>(part)();
    } catch (...) {
      announce_failure(std::current_exception());
      throw;
    }
  }

 private:
  class State;

  /// Notifies the peers and logs, once; not of an error that all ranks throw together.
  void announce_failure(const std::exception_ptr& error);
  RankFailure failure_of(const std::exception_ptr& error) const;
  /// Sets `code`, the run's own, as the exit code at a deadline of MPI_Finalize; returns it.
  static base::ExitCode note_end(base::ExitCode code);
  base::ExitCode end_in_failure(const std::exception_ptr& error);

  std::unique_ptr<State> state_;
  double start_seconds_ = 0;
  double init_seconds_ = 0;
};

}  // namespace trireme::comm
