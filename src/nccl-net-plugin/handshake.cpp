// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "connection.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace trireme::nccl_net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t magic = 0x33495254;  // "TRI3"
constexpr std::uint32_t version = 1;
constexpr std::chrono::seconds patience{10};
/// Sender that does not answer at all; NCCL's own start waits longer.
constexpr std::chrono::seconds dial_patience{60};
/// Limit of pending connections: ones without the secret must not keep the true sender out.
constexpr std::size_t most_callers = 64;
/// Limit of an address's length: UCX's addresses take about 100 bytes a device.
constexpr std::uint32_t most_address_bytes = 64U << 10;

struct Greeting {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::array<std::byte, 16> secret{};
};
struct Answer {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t number = 0;
  std::uint32_t address_bytes = 0;
};

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
template <typename T>
T read_as(const std::vector<std::byte>& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// Comparison that takes as long for a wrong secret as for the right one.
bool equal(const std::array<std::byte, 16>& a, const std::array<std::byte, 16>& b) {
  auto difference = std::byte{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace

Listener::Listener(std::shared_ptr<Worker> worker, const SocketAddress& address)
    : worker_(std::move(worker)), handle_{magic, version, {}, address} {
  if (::getrandom(handle_.secret.data(), handle_.secret.size(), 0) !=
      static_cast<ssize_t>(handle_.secret.size())) {
    base::throw_errno(base::ExitCode::internal, "cannot make a secret", errno);
  }
  socket_ = base::value_or_throw(base::tcp::listen_at(handle_.address));
}

/// True when the caller has sent the secret and got its answer. Throws for any other peer.
bool Listener::advance(Caller& caller) {
  if (!caller.answer) {
    if (caller.greeting.advance(caller.socket) == Progress::pending) return false;
    const auto greeting = read_as<Greeting>(caller.greeting.bytes());
    if (greeting.magic != magic || greeting.version != version ||
        !equal(greeting.secret, handle_.secret)) {
      throw base::Error(base::ExitCode::peer, "a caller does not know the secret of this handle");
    }
    std::vector<std::byte> address;
    {
      const std::lock_guard lock(worker_->mutex());
      caller.number = worker_->next_connection();
      address = worker_->address();
    }
    auto bytes =
        bytes_of(Answer{magic, version, caller.number, static_cast<std::uint32_t>(address.size())});
    bytes.insert(bytes.end(), address.begin(), address.end());
    caller.answer = Transfer::sending(std::move(bytes));
  }
  return caller.answer->advance(caller.socket) == Progress::done;
}

std::unique_ptr<Connection> Listener::accept() {
  while (callers_.size() < most_callers) {
    auto socket = base::value_or_throw(base::tcp::accept_one(socket_));
    if (!socket) break;
    callers_.push_back({std::move(socket), Transfer::receiving(sizeof(Greeting)), std::nullopt, 0,
                        Clock::now() + patience});
  }
  for (auto it = callers_.begin(); it != callers_.end();) {
    bool leaves = Clock::now() > it->deadline;
    try {
      if (advance(*it)) {
        auto connection =
            std::make_unique<Connection>(worker_, Connection::Direction::receives,
                                         std::move(it->socket), it->number, "that sends");
        callers_.erase(it);
        return connection;
      }
    } catch (const base::Error&) {
      // Port scanner, or a closed connection: the true sender may still come.
      leaves = true;
    }
    it = leaves ? callers_.erase(it) : it + 1;
  }
  return nullptr;
}

Dial::Dial(std::shared_ptr<Worker> worker, const Handle& handle)
    : worker_(std::move(worker)),
      peer_(base::tcp::text_of(handle.address)),
      greeting_(Transfer::sending(bytes_of(Greeting{magic, version, handle.secret}))),
      header_(Transfer::receiving(sizeof(Answer))),
      deadline_(Clock::now() + dial_patience) {
  if (handle.magic != magic || handle.version != version) {
    throw base::Error(base::ExitCode::usage,
                      "the handle is of another network plugin or version (all ranks must load the "
                      "same libnccl-net-trireme.so); compare NCCL_NET_PLUGIN on all nodes");
  }
  socket_ = base::value_or_throw(base::tcp::begin_connect(handle.address));
}

std::unique_ptr<Connection> Dial::advance() {
  if (Clock::now() > deadline_) {
    throw base::Error(
        base::ExitCode::peer,
        base::format("{} did not answer within {} s (a firewall between the nodes, or "
                     "the wrong interface); set NCCL_SOCKET_IFNAME",
                     peer_, dial_patience.count()));
  }
  if (greeting_.advance(socket_) == Progress::pending) return nullptr;
  if (header_.advance(socket_) == Progress::pending) return nullptr;
  const auto answer = read_as<Answer>(header_.bytes());
  if (answer.magic != magic || answer.version != version || answer.address_bytes == 0 ||
      answer.address_bytes > most_address_bytes) {
    throw base::Error(base::ExitCode::peer, peer_ + " answered with something else");
  }
  if (!address_) address_ = Transfer::receiving(answer.address_bytes);
  if (address_->advance(socket_) == Progress::pending) return nullptr;
  auto connection = std::make_unique<Connection>(worker_, Connection::Direction::sends,
                                                 std::move(socket_), answer.number, peer_);
  const std::lock_guard lock(worker_->mutex());
  connection->open_way(address_->bytes());
  return connection;
}

}  // namespace trireme::nccl_net
