// SPDX-License-Identifier: Apache-2.0
// Client side of the protocol of NCCL's src/ras/client.cc: lines of text over TCP. The answer is
// requested as text: all versions have that, and the JSON of 2.28 cannot be parsed where ranks are
// missing (it lacks a comma).
#include "comm/nccl/diagnostics/ras.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/tcp.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace trireme::comm::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t longest_answer_line = 1024;

using base::tcp::SocketAddress;

SocketAddress address_of(const in_addr& host, std::uint16_t port) {
  SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr = host;
  base::tcp::set_port(address, port);
  return address;
}

SocketAddress address_of(const in6_addr& host, std::uint16_t port) {
  SocketAddress address{};
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_addr = host;
  base::tcp::set_port(address, port);
  return address;
}

/// Addresses of this node that the text names; none where it is no loopback.
std::vector<SocketAddress> addresses_of(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  const auto text = std::string_view(address).substr(colon + 1);
  const auto port = base::number_in<std::uint16_t>(text).value_or(0);
  if (port == 0) return {};
  const auto host = address.substr(0, colon);
  in_addr four{};
  in6_addr six{};
  if (host == "localhost") {
    four.s_addr = htonl(INADDR_LOOPBACK);
    return {address_of(four, port), address_of(in6addr_loopback, port)};
  }
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
    constexpr std::uint32_t loopback = 127;
    if (ntohl(four.s_addr) >> 24U != loopback) return {};
    return {address_of(four, port)};
  }
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return {};
  if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) != 1) return {};
  if (!IN6_IS_ADDR_LOOPBACK(&six)) return {};
  return {address_of(six, port)};
}

/// Connection with one deadline for all waits.
class Connection {
 public:
  explicit Connection(Clock::time_point deadline) : deadline_(deadline) {}

  bool open(const SocketAddress& address) {
    auto socket = base::tcp::begin_connect(address);
    if (!socket.ok()) return false;
    socket_ = std::move(*socket);
    if (!await(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  bool write(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        text.remove_prefix(static_cast<std::size_t>(sent));
      } else if ((errno != EAGAIN && errno != EINTR) || !await(POLLOUT)) {
        return false;
      }
    }
    return true;
  }

  /// Line up to and with a newline; none when it does not come.
  std::optional<std::string> read_line() {
    while (received_.find('\n') == std::string::npos) {
      if (received_.size() > longest_answer_line || !read_some(longest_answer_line))
        return std::nullopt;
    }
    const auto end = received_.find('\n') + 1;
    auto line = received_.substr(0, end);
    received_.erase(0, end);
    return line;
  }

  /// Text until the other side closes, the limit is reached, or time is up.
  std::string read_all(std::size_t most_bytes) {
    while (received_.size() < most_bytes && read_some(most_bytes - received_.size())) {
    }
    return std::move(received_);
  }

 private:
  bool read_some(std::size_t most_bytes) {
    char buffer[16384];
    for (;;) {
      const auto got = ::recv(socket_.get(), buffer, std::min(sizeof buffer, most_bytes), 0);
      if (got > 0) {
        received_.append(buffer, static_cast<std::size_t>(got));
        return true;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR) || !await(POLLIN)) return false;
    }
  }

  bool await(short events) const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{socket_.get(), events, 0};
    return ::poll(&entry, 1, static_cast<int>(left.count())) > 0;
  }

  Clock::time_point deadline_;
  base::File socket_;
  std::string received_;
};

bool open_any(Connection& connection, const std::vector<SocketAddress>& addresses) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const SocketAddress& address) { return connection.open(address); });
}

}  // namespace

base::Result<std::string> ask_ras(const RasQuestion& question) {
  const auto failure = [&](const char* problem) {
    return base::Failure{base::ExitCode::peer,
                         base::format("NCCL's RAS at '{}' {}", question.address, problem)};
  };
  const auto addresses = addresses_of(question.address);
  if (addresses.empty()) return failure("is not asked: that is not a port of this node itself");
  Connection connection(Clock::now() + question.at_most);
  if (!open_any(connection, addresses)) return failure("does not answer");
  if (!connection.write("CLIENT PROTOCOL 2\n")) return failure("does not listen");
  // Protocol number: 2 in all versions so far; NCCL's own client accepts any.
  const auto greeting = connection.read_line();
  if (!greeting || !greeting->starts_with("SERVER PROTOCOL ")) {
    return failure("does not speak its protocol");
  }
  // Timeout of the RAS for other processes; it must end before this side's does.
  const auto seconds = std::max<long>(
      1, std::chrono::duration_cast<std::chrono::seconds>(question.at_most).count() - 1);
  if (!connection.write(base::format("TIMEOUT {}\n", seconds)) ||
      connection.read_line() != "OK\n") {
    return failure("takes no time limit");
  }
  if (!connection.write("STATUS\n")) return failure("does not listen");
  auto answer = connection.read_all(question.most_bytes);
  if (answer.empty()) return failure("says nothing");
  return answer;
}

}  // namespace trireme::comm::nccl
