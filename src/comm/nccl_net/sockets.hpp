#pragma once

#include "trireme/base/file.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// TCP sockets that never block: over them peers of a connection find each other and notice each
/// other's death. Failures of the system are base::Error.
namespace trireme::comm::nccl_net {

/// IPv4 or IPv6, with port.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};
std::string text_of(const SocketAddress& address);

struct Interface {
  std::string name;
  SocketAddress address;
};
/// That are up and running and have an address (IPv4 before IPv6), but loopback; of the network
/// namespace that this process is in.
std::vector<Interface> find_interfaces();

/// Listens at the address, at a port that the system chooses and writes into it.
base::File listen_at(SocketAddress& address);
/// An empty handle when nobody has called yet.
base::File accept_one(const base::File& listener);
/// Begins to connect; sending waits until it is done.
base::File begin_connect(const SocketAddress& address);
/// A dead peer's host is noticed after about 15 seconds.
void watch_peer(const base::File& socket);

enum class Progress { pending, done };
/// Bytes that go out or come in piece by piece.
class Transfer {
 public:
  static Transfer sending(std::vector<std::byte> bytes);
  static Transfer receiving(std::size_t size);

  /// Moves what can be moved now; throws Error when the peer is gone.
  Progress advance(const base::File& socket);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  bool sends_ = false;
  std::vector<std::byte> bytes_;
  std::size_t moved_ = 0;
};

enum class PeerState { alive, said_goodbye, gone };
/// Looks at a connection over which nothing but a goodbye is sent.
PeerState look_at_peer(const base::File& socket);
void say_goodbye(const base::File& socket);

}  // namespace trireme::comm::nccl_net
