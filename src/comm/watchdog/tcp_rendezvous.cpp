// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/tcp_rendezvous.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
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
    const bool received = ::recv(socket.get(), &answer, 1, 0) == 1;
    stage = received && answer == welcome ? Stage::connected : Stage::failed;
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

/// Number of the peer if an accepted connection begins with a Hello with the secret.
std::optional<std::int32_t> authenticate(const base::File& socket,
                                         const std::array<std::uint8_t, 16>& secret) {
  Hello hello;
  // One recv is enough: a peer's Hello is so short that it comes in one piece.
  const bool known = ::recv(socket.get(), &hello, sizeof hello, 0) == ssize_t{sizeof hello} &&
                     hello.secret == secret;
  if (!known || ::send(socket.get(), &welcome, 1, MSG_NOSIGNAL) != 1) return std::nullopt;
  return hello.number;
}

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
  std::vector<Connection> accepted;
  // Connections that have not sent Hello yet.
  std::vector<base::File> pending;
  while (accepted.size() < count && left_ms(until) > 0) {
    std::vector<pollfd> polled;
    for (const auto& socket : pending) polled.push_back({socket.get(), POLLIN, 0});
    for (const auto& socket : listening_) polled.push_back({socket.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), left_ms(until)) <= 0) continue;
    const auto before = pending.size();
    for (std::size_t i = before; i > 0; --i) {
      if (polled[i - 1].revents == 0) continue;
      auto socket = std::move(pending[i - 1]);
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      if (const auto number = authenticate(socket, info_.secret)) {
        try_keepalive(socket);
        accepted.push_back({std::move(socket), *number});
      }
    }
    for (std::size_t i = 0; i < listening_.size(); ++i) {
      if (polled[before + i].revents == 0 || pending.size() > 2 * count + 16) continue;
      auto socket = base::tcp::accept_one(listening_[i]);
      if (socket.ok() && *socket) pending.push_back(std::move(*socket));
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
