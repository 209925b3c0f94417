// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/tcp_rendezvous.hpp"

#include "comm/watchdog/socket_set.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// First and only message of a peer before it is let in.
struct Hello {
  std::array<std::uint8_t, 16> secret{};
  std::int32_t number = 0;
};
/// Answer to a Hello with the right secret.
constexpr char welcome = 'w';
/// Answer to a welcome: the peer keeps this connection and closes its others. Only then is it in:
/// hosts with several networks in common say Hello over each of them.
constexpr char confirmation = 'c';

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// A connection to one endpoint that is being made.
struct Attempt {
  enum class Stage {
    connecting,
    authenticating,  ///< Hello sent, answer awaited
    connected,
    failed
  };
  base::File socket;
  Stage stage = Stage::connecting;

  /// Continues the handshake as far as the socket allows. Never blocks.
  void advance(const Hello& hello) {
    if (stage == Stage::connecting) {
      const bool sent =
          ::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t{sizeof hello};
      stage = sent ? Stage::authenticating : Stage::failed;
      return;
    }
    // Another process may listen at that address: only a peer answers with welcome.
    char answer = 0;
    const bool welcomed = ::recv(socket.get(), &answer, 1, 0) == 1 && answer == welcome &&
                          ::send(socket.get(), &confirmation, 1, MSG_NOSIGNAL) == 1;
    stage = welcomed ? Stage::connected : Stage::failed;
  }
};

/// Keepalive is best effort: without it the end of a peer's system is only detected later.
void try_keepalive(const base::File& socket) {
  [[maybe_unused]] const auto enabled = base::tcp::enable_keepalive(socket);
}

/// Starts connections to all endpoints at once: an address of a network that does not reach this
/// far answers late or never.
std::vector<Attempt> start_attempts(const ListenerInfo& listener) {
  std::vector<Attempt> attempts;
  for (std::int32_t i = 0; i < listener.endpoint_count; ++i) {
    auto socket = base::tcp::begin_connect(listener.endpoints[static_cast<std::size_t>(i)]);
    if (!socket.ok()) continue;
    try_keepalive(*socket);
    attempts.push_back({std::move(*socket)});
  }
  return attempts;
}

/// Connection whose peer is not in yet.
struct Visitor {
  base::File socket;
  /// Number that its Hello gave; none before.
  std::optional<std::int32_t> number;
  bool is_confirmed = false;

  /// Reads its next message. False where it is no peer's, or the connection has ended.
  bool advance(const std::array<std::uint8_t, 16>& secret) {
    // One recv each is enough: messages are so short that they come in one piece.
    if (number) {
      char answer = 0;
      is_confirmed = ::recv(socket.get(), &answer, 1, 0) == 1 && answer == confirmation;
      return is_confirmed;
    }
    Hello hello;
    const bool known = ::recv(socket.get(), &hello, sizeof hello, 0) == ssize_t{sizeof hello} &&
                       hello.secret == secret;
    if (known) number = hello.number;
    return known && ::send(socket.get(), &welcome, 1, MSG_NOSIGNAL) == 1;
  }
};

/// Connections to a listener whose peers are not in yet, by descriptor.
class Visitors {
 public:
  Visitors(const SocketSet& sockets, std::size_t most) : sockets_(sockets), most_(most) {}

  /// Takes what has connected.
  void take(const base::File& listener) {
    for (;;) {
      auto socket = base::tcp::accept_one(listener);
      if (!socket.ok() || !*socket) return;
      if (visitors_.size() >= most_) drop_stranger();
      const auto key = static_cast<std::uint64_t>(socket->get());
      if (sockets_.add(*socket, key)) visitors_[key].socket = std::move(*socket);
    }
  }

  /// Reads the next message of a visitor; the connection of one whose peer is in with it.
  std::optional<Listener::Connection> advance(std::uint64_t key,
                                              const std::array<std::uint8_t, 16>& secret) {
    const auto found = visitors_.find(key);
    if (found == visitors_.end()) return std::nullopt;
    auto& visitor = found->second;
    const bool goes_on = visitor.advance(secret);
    if (goes_on && !visitor.is_confirmed) return std::nullopt;
    std::optional<Listener::Connection> connection;
    if (goes_on) {
      TRIREME_ENSURE(visitor.number.has_value(), "a confirmed visitor has said its number");
      sockets_.remove(visitor.socket);
      connection = Listener::Connection{std::move(visitor.socket), *visitor.number};
    }
    visitors_.erase(found);
    return connection;
  }

 private:
  /// Room for peers, whoever else connects and says nothing.
  void drop_stranger() {
    const auto stranger = std::find_if(visitors_.begin(), visitors_.end(), [](const auto& visitor) {
      return !visitor.second.number.has_value();
    });
    if (stranger != visitors_.end()) visitors_.erase(stranger);
  }

  const SocketSet& sockets_;
  std::size_t most_;
  std::unordered_map<std::uint64_t, Visitor> visitors_;
};

}  // namespace

Listener::Listener(const std::vector<Address>& addresses) {
  const auto bytes = ::getrandom(info_.secret.data(), info_.secret.size(), 0);
  if (bytes != static_cast<ssize_t>(info_.secret.size())) return;
  for (const auto& address : addresses) {
    if (listening_.size() == info_.endpoints.size()) break;
    auto endpoint = address.socket;
    auto socket = base::tcp::listen_at(endpoint);
    if (!socket.ok()) continue;
    info_.endpoints[listening_.size()] = endpoint;
    listening_.push_back(std::move(*socket));
  }
  info_.endpoint_count = static_cast<std::int32_t>(listening_.size());
}

std::vector<Listener::Connection> Listener::accept(std::size_t count, milliseconds limit) {
  const auto until = Clock::now() + limit;
  const SocketSet sockets;
  for (const auto& listener : listening_) {
    if (!sockets.add(listener, static_cast<std::uint64_t>(listener.get()))) return {};
  }
  // Each peer comes once over each network at most.
  Visitors visitors(sockets, count * listening_.size() + 16);
  std::set<std::int32_t> numbers;
  std::vector<Connection> accepted;
  while (accepted.size() < count && left_ms(until) > 0) {
    for (const auto key : sockets.ready(milliseconds(left_ms(until)))) {
      const auto listener =
          std::find_if(listening_.begin(), listening_.end(), [&](const base::File& socket) {
            return static_cast<std::uint64_t>(socket.get()) == key;
          });
      if (listener != listening_.end()) {
        visitors.take(*listener);
        continue;
      }
      auto connection = visitors.advance(key, info_.secret);
      if (!connection || !numbers.insert(connection->number).second) continue;
      try_keepalive(connection->socket);
      accepted.push_back(std::move(*connection));
    }
  }
  return accepted;
}

base::File connect_to(const ListenerInfo& listener, std::int32_t number, milliseconds limit) {
  const auto until = Clock::now() + limit;
  const Hello hello{listener.secret, number};
  auto attempts = start_attempts(listener);
  while (!attempts.empty() && left_ms(until) > 0) {
    std::vector<pollfd> polled;
    for (const auto& attempt : attempts) {
      const short event = attempt.stage == Attempt::Stage::connecting ? POLLOUT : POLLIN;
      polled.push_back({attempt.socket.get(), event, 0});
    }
    if (::poll(polled.data(), polled.size(), left_ms(until)) <= 0) continue;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (polled[i].revents != 0) attempts[i].advance(hello);
      if (attempts[i].stage == Attempt::Stage::connected) return std::move(attempts[i].socket);
    }
    std::erase_if(attempts,
                  [](const Attempt& attempt) { return attempt.stage == Attempt::Stage::failed; });
  }
  return {};
}

}  // namespace trireme::comm
