// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include "comm/core/world.hpp"
#include "comm/mpi/calls.hpp"
#include "comm/watchdog/node_status.hpp"
#include "comm/watchdog/socket_set.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::comm {

/// TCP connections with keepalive from one rank of each node to rank 0: the system closes its end
/// when a process dies, whatever it was doing, so that the death of a whole node's ranks is
/// detected at once. Deaths of single ranks are detected by their neighbours.
class TcpLiveness {
 public:
  /// Collective over the world. Null where this rank holds no connection.
  static std::unique_ptr<TcpLiveness> create(const World& world, MPI_Comm control);

  /// Failure that came over a connection, or of a rank whose connection broke without a message a
  /// moment ago.
  std::optional<FailureCause> lost_peer();
  /// True if a connection broke because the other node does not answer; HangDiagnosis finds out
  /// which of the two nodes is cut off.
  bool is_silent() const;
  /// Sends the other ends the reason why this rank is about to end. Does not wait.
  void announce(const FailureCause& cause);
  /// Sends the other ends that this rank ends in good order.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    base::File socket;
    base::Rank peer;
    std::string received;
    std::optional<Clock::time_point> broken_since;
    bool has_left = false;
    /// True if the connection broke because the other system does not answer.
    bool is_silent = false;

    Connection(base::File file, base::Rank other) : socket(std::move(file)), peer(other) {}
  };

  explicit TcpLiveness(const World& world) : world_(world) {}
  void connect_all(MPI_Comm control);
  /// Collective over the world: drops connections that only one end has accepted, whose end would
  /// look like a death.
  void keep_common(MPI_Comm control);
  void read(Connection& connection);
  std::optional<FailureCause> failure_of(const Connection& connection) const;
  void send(std::string_view bytes) const;

  const World& world_;
  std::vector<Connection> connections_;
  /// Sockets of unbroken connections, by index.
  SocketSet sockets_;
};

}  // namespace trireme::comm
