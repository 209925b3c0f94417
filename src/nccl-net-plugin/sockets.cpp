// SPDX-License-Identifier: Apache-2.0
#include "sockets.hpp"

#include "trireme/base/error.hpp"

#include <algorithm>
#include <cerrno>

namespace trireme::nccl_net {
namespace {

constexpr char goodbye = 'B';

[[noreturn]] void fail(const std::string& doing, int error) {
  base::throw_errno(base::ExitCode::peer, doing, error);
}

}  // namespace

std::vector<Interface> find_interfaces() {
  const auto all = base::value_or_throw(base::tcp::interface_addresses());
  std::vector<Interface> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& each : all) {
      if (each.address.any.sa_family != family || !each.is_running) continue;
      const auto same = [&](const Interface& other) { return other.name == each.interface; };
      if (std::any_of(found.begin(), found.end(), same)) continue;
      found.push_back({each.interface, each.address});
    }
  }
  return found;
}

Transfer Transfer::sending(std::vector<std::byte> bytes) {
  Transfer transfer;
  transfer.sends_ = true;
  transfer.bytes_ = std::move(bytes);
  return transfer;
}

Transfer Transfer::receiving(std::size_t size) {
  Transfer transfer;
  transfer.bytes_.resize(size);
  return transfer;
}

Progress Transfer::advance(const base::File& socket) {
  while (moved_ < bytes_.size()) {
    auto* place = bytes_.data() + moved_;
    const auto left = bytes_.size() - moved_;
    const auto count = sends_ ? ::send(socket.get(), place, left, MSG_NOSIGNAL)
                              : ::recv(socket.get(), place, left, 0);
    if (count > 0) {
      moved_ += static_cast<std::size_t>(count);
    } else if (count == 0) {
      fail("the peer hung up", ECONNRESET);
    } else if (errno == EAGAIN || errno == ENOTCONN) {
      return Progress::pending;
    } else if (errno != EINTR) {
      fail("the connection to the peer failed", errno);
    }
  }
  return Progress::done;
}

PeerState look_at_peer(const base::File& socket) {
  char said = 0;
  const auto count = ::recv(socket.get(), &said, 1, MSG_DONTWAIT);
  if (count == 1) return said == goodbye ? PeerState::said_goodbye : PeerState::gone;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return PeerState::alive;
  return PeerState::gone;
}

void say_goodbye(const base::File& socket) {
  // A failed send is ignored: the peer is gone.
  static_cast<void>(::send(socket.get(), &goodbye, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace trireme::nccl_net
