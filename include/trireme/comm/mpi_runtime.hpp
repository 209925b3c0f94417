// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/peer_error.hpp"
#include "trireme/comm/process_group.hpp"

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

/// How ranks that share memory put there what a peer reads next. Past their caches is twice as fast
/// where the two share none, and slower where they do.
enum class Stores {
  measured,  ///< both ways are timed when the group is made, and all members use the faster
  ordinary,
  streaming
};

struct GroupOptions {
  Backend backend = Backend::automatic;
  /// How long any wait may last.
  double timeout_seconds = 600;
  Stores stores = Stores::measured;
};

/// A process as its launcher numbered it, with its own word about itself.
struct LaunchedProcess {
  std::string node;
  std::string word;
};

/// How processes become ranks; as the launcher numbered them, unless asked otherwise.
struct Numbering {
  /// At most longest_word bytes; what is longer counts as empty.
  std::string word;
  /// By rank: which process becomes it. Gets all processes in the launcher's order, and must answer
  /// alike on all of them; what is no permutation changes nothing.
  std::function<std::vector<int>(const std::vector<LaunchedProcess>&)> order;

  static constexpr std::size_t longest_word = 511;
};

/// Who says aloud how a run failed.
enum class Voice {
  every_rank,  ///< each has met something of its own
  first_rank   ///< all have met the same: rank 0 speaks, and the others' words are in their logs
};

/// How a rank failed, for whoever writes it down.
struct RankFailure {
  base::ExitCode code = base::ExitCode::internal;
  /// What this rank met: "all_reduce number 7 of process group 'dp' cannot finish: …".
  std::string text;
  /// What went wrong at first: "rank 3 (process 4711 on n2) died …".
  std::string cause;
  /// The rank that failed first, as far as this one knows; itself when nobody else did.
  base::Rank first;
  std::string host;
  /// What the launcher calls that rank (Slurm's task): the same number unless ranks were reordered;
  /// -1 when it is not known.
  int first_task = -1;
  /// Operation and group when a collective failed.
  Absence absence;
  Voice voice = Voice::every_rank;
  /// How many ranks failed alike, where voice is that of the first rank.
  int failed_count = 1;
  /// The room of the source that failed: "config".
  std::string room = "runtime";
};

struct StartOptions {
  Numbering numbering = {};
  /// How long MPI's own calls that wait for all ranks may last (MPI_Init, communicators, first
  /// connections, MPI_Finalize): they have no deadline. One that reaches it ends this rank (exit
  /// code 5; in MPI_Finalize that of the run) and says which call, where, and who of this node is
  /// missing. Zero or less: none.
  double timeout_seconds = 300;
};

/// Owner of MPI: starts it, says who this rank is, makes process groups, and ends it. One per
/// process, on the thread that will communicate; groups die before it.
class MpiRuntime {
 public:
  /// Throws base::Error (ExitCode::launch) when MPI gives less than MPI_THREAD_FUNNELED.
  explicit MpiRuntime(const StartOptions& options = {});
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;
  /// Finalizes, but not while unwinding: peers may be waiting elsewhere.
  ~MpiRuntime();

  /// How long this object took to start, and MPI_Init alone.
  double start_seconds() const { return start_seconds_; }
  double init_seconds() const { return init_seconds_; }

  base::Rank world_rank() const;
  int world_size() const;
  /// The launcher's number of a rank: another one where Numbering::order changed it.
  int task_of(base::Rank rank) const;
  /// Position among the ranks of this node, and their number.
  base::LocalRank local_rank() const;
  int local_size() const;
  /// World ranks of this node, by local rank.
  std::vector<base::Rank> node_ranks() const;
  /// Position of this node in the order of each node's lowest rank, and the number of nodes.
  base::NodeRank node_rank() const;
  int node_count() const;
  /// As MPI calls it: the host name.
  const std::string& node_name() const;

  /// Collective over `ranks` (world ranks by position, this one among them) and nobody else.
  /// Host-blocking: yes. PeerError names the members that did not come.
  std::unique_ptr<ProcessGroup> make_group(std::string name, std::vector<base::Rank> ranks,
                                           const GroupOptions& options = {});
  /// The same with all ranks.
  std::unique_ptr<ProcessGroup> make_world(const GroupOptions& options = {});

  /// What this rank waits for, as its neighbours see it: "waiting in barrier number 3 of process
  /// group 'dp'". Empty while it computes, and on a rank without neighbours. From any thread.
  std::string activity() const;

  /// What drives all operations of this process, for groups of this room.
  ProgressEngine& progress();

  /// Told once in a failed run, before this rank ends and after its peers know; must not
  /// communicate. What it throws is logged.
  void on_failure(std::function<void(const RankFailure&)> listener);

  /// Runs the program; its exit code. What nobody caught ends this rank with its code, logged,
  /// and the peers learn of it at once instead of hanging. Only an AgreedError, which all ranks
  /// throw together, lets MPI end in good order.
  template <typename F>
  base::ExitCode run(F&& body) {
    try {
      return note_end(std::forward<F>(body)());
    } catch (...) {
      return end_in_failure(std::current_exception());
    }
  }

 private:
  class State;

  /// From here on a deadline ends this rank with the run's own code.
  static base::ExitCode note_end(base::ExitCode code);
  base::ExitCode end_in_failure(const std::exception_ptr& error);

  std::unique_ptr<State> state_;
  double start_seconds_ = 0;
  double init_seconds_ = 0;
};

}  // namespace trireme::comm
