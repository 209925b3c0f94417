// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/mpi/calls.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace trireme::comm {

/// One send, one receive, or both, with ranks of the communicator; -1 for none.
struct SendReceive {
  int to = -1;
  std::span<const std::byte> send;
  int from = -1;
  std::span<std::byte> receive;
};

/// Direct messages between ranks, a bounded number of them under way. Every member must list
/// matching messages of one pair in the same order. Because no rank relays data, the missing
/// messages name the ranks that did not come.
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
