// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/hang_report.hpp"
#include "comm/core/world.hpp"
#include "comm/mpi/calls.hpp"

#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace trireme::comm {

/// Finds which ranks hold up an operation: status queries about missing ranks, and replies to those
/// of others, over MPI messages that both sides handle while they wait.
class HangDiagnosis {
 public:
  /// Status of a rank of this node, this one among them.
  using StatusOf = std::function<RankStatus(base::Rank)>;

  HangDiagnosis(const World& world, MPI_Comm control, StatusOf status_of);

  /// Replies to queries of other ranks; to be called regularly in every wait.
  void reply();

  /// Queries ranks that this one waits for in `operation`, then about those that they wait for,
  /// and so on.
  void start(const std::vector<base::Rank>& missing, std::string operation);
  /// Takes replies; true if nothing more can be learned.
  bool complete();
  HangReport report() const;

 private:
  struct StatusMessage;
  struct Outgoing {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  template <typename T>
  void send(const T& message, int to, int tag);
  void query(base::Rank subject);
  void record(base::Rank subject, const RankStatus& status);
  void take_replies();
  /// Ranks at which chains of waits begin.
  std::vector<base::Rank> root_causes() const;
  /// Root causes where all ranks wait for each other: those that have not come to the operation.
  std::vector<base::Rank> cyclic_waiters() const;
  /// Leaders of the nodes of which no rank has replied.
  std::vector<int> silent_nodes() const;
  HangReport report_on(std::vector<base::Rank> ranks) const;
  /// True if this side is cut off: the silent nodes are the larger part.
  bool is_cut_off(const std::vector<int>& silent) const;
  HangReport report_own_side(const std::vector<int>& silent) const;

  const World& world_;
  MPI_Comm control_;
  StatusOf status_of_;
  std::list<Outgoing> outgoing_;
  /// Number of the diagnosis under way: replies to earlier ones are dropped.
  std::int32_t number_ = 0;
  std::vector<base::Rank> missing_;
  std::string operation_;
  std::map<base::Rank, RankStatus> statuses_;
  /// Leaders of nodes that have replied.
  std::set<int> replied_;
};

}  // namespace trireme::comm
