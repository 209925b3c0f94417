// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/mpi/calls.hpp"
#include "comm/mpi/stage.hpp"

#include <vector>

namespace trireme::comm {

/// Direct messages between ranks, a bounded number of them under way. Every member must list
/// matching messages of one pair in the same order. The missing messages name the ranks that did
/// not come, or that wait for others themselves where ranks relay (rounds.hpp).
class P2pBatch {
 public:
  P2pBatch(MPI_Comm communicator, int tag, std::vector<SendReceive> steps)
      : communicator_(communicator), tag_(tag), steps_(std::move(steps)) {}

  P2pBatch(const P2pBatch&) = delete;
  P2pBatch& operator=(const P2pBatch&) = delete;
  /// Gives up the messages under way, after a failure.
  ~P2pBatch();

  /// One step; true if anything was started or completed.
  bool advance();
  bool done() const { return next_ == steps_.size() && in_flight_.empty(); }
  /// Ranks of the communicator whose messages have not come; if all have come, those that have not
  /// received this rank's.
  std::vector<int> missing() const;

 private:
  enum class Direction { send, receive };
  struct InFlight {
    MPI_Request request;
    int peer;
    int bytes;
    Direction direction;
  };

  void start(const SendReceive& step);
  void complete(InFlight& message) const;

  MPI_Comm communicator_;
  int tag_;
  std::vector<SendReceive> steps_;
  std::size_t next_ = 0;
  std::vector<InFlight> in_flight_;
};

}  // namespace trireme::comm
