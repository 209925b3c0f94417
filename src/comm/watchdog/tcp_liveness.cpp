// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/tcp_liveness.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "comm/watchdog/failure_message.hpp"
#include "comm/watchdog/tcp_rendezvous.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace trireme::comm {
namespace {

using std::chrono::milliseconds;

/// Longest wait at the start where no network lets connections through.
milliseconds connect_limit(std::size_t nodes) {
  // Rank 0 answers each node: a large job needs longer, of which there is no need else.
  return milliseconds(3000 + 2 * nodes);
}
/// Time between the end of a connection and its report as a death: a rank that failed has sent its
/// message by other ways, and where the launcher ends all ranks at once, those that end first are
/// not the cause.
constexpr milliseconds report_delay{500};

constexpr char goodbye_byte = 'l';
constexpr char failure_byte = 'f';

/// Collective over the world. On rank 0 its addresses in the networks of the other nodes.
std::vector<Address> towards_peers(const World& world, MPI_Comm control) {
  const bool is_leader = world.leader(world.self) == world.self.value();
  const auto own = is_leader ? own_addresses() : Addresses{};
  std::vector<Address> all(world.self.value() == 0 ? world.hosts.size() * own.size() : 0);
  mpi::library_gather(&own, all.data(), sizeof own, 0, control);
  if (all.empty()) return {};
  all.erase(all.begin(), all.begin() + own.size());
  return towards(own, all);
}

}  // namespace

std::unique_ptr<TcpLiveness> TcpLiveness::create(const World& world, MPI_Comm control) {
  if (world.nodes().size() < 2) return nullptr;
  std::unique_ptr<TcpLiveness> liveness(new TcpLiveness(world));
  liveness->connect_all(control);
  return liveness->connections_.empty() ? nullptr : std::move(liveness);
}

void TcpLiveness::connect_all(MPI_Comm control) {
  const auto nodes = world_.nodes();
  std::optional<Listener> listener;
  ListenerInfo info;
  const auto addresses = towards_peers(world_, control);
  if (world_.self.value() == 0) info = listener.emplace(addresses).info();
  mpi::library_broadcast(&info, sizeof info, 0, control);
  if (info.endpoint_count == 0) return;
  if (listener) {
    for (auto& [socket, number] : listener->accept(nodes.size() - 1, connect_limit(nodes.size()))) {
      connections_.emplace_back(std::move(socket), base::Rank(number));
    }
  } else if (world_.leader(world_.self) == world_.self.value()) {
    auto socket = connect_to(info, world_.self.value(), connect_limit(nodes.size()));
    if (socket) connections_.emplace_back(std::move(socket), base::Rank(0));
  }
  keep_common(control);
  for (std::size_t i = 0; i < connections_.size(); ++i) sockets_.add(connections_[i].socket, i);
  if (listener && connections_.size() < nodes.size() - 1) {
    base::log::local::warning(
        "comm",
        "{} of {} other nodes have no TCP connection to {} (the death of all ranks of a node is "
        "noticed only after comm.timeout); let nodes reach each other's ports",
        nodes.size() - 1 - connections_.size(), nodes.size() - 1, world_.hosts.front());
  }
}

void TcpLiveness::keep_common(MPI_Comm control) {
  const auto size = world_.leaders.size();
  const char mine = connections_.empty() ? '\0' : '\1';
  std::vector<char> kept(size);
  mpi::library_gather(&mine, kept.data(), 1, 0, control);
  if (world_.self.value() == 0) {
    std::erase_if(connections_, [&](const Connection& connection) {
      return kept[connection.peer.index()] == '\0';
    });
    std::fill(kept.begin(), kept.end(), '\0');
    for (const auto& connection : connections_) kept[connection.peer.index()] = '\1';
  }
  mpi::library_broadcast(kept.data(), static_cast<int>(size), 0, control);
  if (world_.self.value() != 0 && kept[world_.self.index()] == '\0') connections_.clear();
}

void TcpLiveness::read(Connection& connection) {
  char bytes[1024];
  while (!connection.broken_since) {
    const auto count = ::recv(connection.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
      sockets_.remove(connection.socket);
      connection.broken_since = Clock::now();
      // A system whose process has ended closes the connection; a system that is gone sends
      // nothing.
      connection.is_silent = count < 0 && errno != ECONNRESET && errno != EPIPE;
      return;
    }
    // Limit: a peer sends one message at most.
    if (connection.received.size() <= sizeof(FailureMessage)) {
      connection.received.append(bytes, static_cast<std::size_t>(count));
    }
    connection.has_left = connection.has_left || connection.received.front() == goodbye_byte;
  }
}

std::optional<FailureCause> TcpLiveness::failure_of(const Connection& connection) const {
  if (connection.received.size() >= 1 + sizeof(FailureMessage) &&
      connection.received.front() == failure_byte) {
    FailureMessage message;
    std::copy_n(connection.received.data() + 1, sizeof message, reinterpret_cast<char*>(&message));
    return message.cause();
  }
  if (connection.has_left || !connection.broken_since ||
      Clock::now() - *connection.broken_since < report_delay) {
    return std::nullopt;
  }
  const auto& host = world_.hosts[connection.peer.index()];
  if (connection.is_silent) {
    return FailureCause{
        connection.peer, host,
        base::format("{} is down or cut off: its system has not answered for {} s (power, cable, "
                     "switch or kernel), seen from {}",
                     host, base::tcp::Keepalive::silence_s, world_.hosts[world_.self.index()])};
  }
  return FailureCause{
      connection.peer, host,
      base::format("{} died without a word, and nobody on {} says why (killed by a signal or by "
                   "the system; perhaps the node died, or its slurmstepd)",
                   world_.text(connection.peer), host)};
}

std::optional<FailureCause> TcpLiveness::lost_peer() {
  std::optional<FailureCause> found;
  for (const auto index : sockets_.ready(milliseconds(0))) read(connections_[index]);
  for (const auto& connection : connections_) {
    auto failure = failure_of(connection);
    // A received message is better evidence than silence.
    if (failure && (!found || connection.received.size() > 1)) found = std::move(failure);
  }
  return found;
}

bool TcpLiveness::is_silent() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const Connection& connection) { return connection.is_silent; });
}

void TcpLiveness::send(std::string_view bytes) const {
  for (const auto& connection : connections_) {
    // Best effort: so little fits any socket's buffer, and the other end may be gone.
    [[maybe_unused]] const auto sent =
        ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void TcpLiveness::announce(const FailureCause& cause) {
  const FailureMessage message(cause);
  std::string bytes(1, failure_byte);
  bytes.append(reinterpret_cast<const char*>(&message), sizeof message);
  send(bytes);
}

void TcpLiveness::leave() {
  send({&goodbye_byte, 1});
}

}  // namespace trireme::comm
