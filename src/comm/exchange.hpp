#pragma once

#include "mpi_calls.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace trireme::comm {

/// One send, one receive, or both, with ranks of the communicator; -1 for none.
struct ExchangeStep {
  int to = -1;
  std::span<const std::byte> send;
  int from = -1;
  std::span<std::byte> receive;
};

/// Direct messages between ranks, a bounded number of them in flight. Every member must list
/// matching messages of one pair in the same order. Because nothing is relayed, the messages
/// that are missing name the ranks that did not come.
class Exchange {
 public:
  Exchange(MPI_Comm communicator, int tag, std::vector<ExchangeStep> steps)
      : communicator_(communicator), tag_(tag), steps_(std::move(steps)) {}

  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// Gives up what is in flight, after a failure.
  ~Exchange();

  /// Whether anything was started or completed.
  bool advance();
  bool done() const { return next_ == steps_.size() && flights_.empty(); }
  /// Ranks of the communicator whose messages have not come; those that have not taken ours
  /// when all have come.
  std::vector<int> missing() const;

 private:
  enum class Direction { send, receive };
  struct Flight {
    MPI_Request request;
    int peer;
    int bytes;
    Direction direction;
  };

  void start(const ExchangeStep& step);
  void complete(Flight& flight) const;

  MPI_Comm communicator_;
  int tag_;
  std::vector<ExchangeStep> steps_;
  std::size_t next_ = 0;
  std::vector<Flight> flights_;
};

}  // namespace trireme::comm
