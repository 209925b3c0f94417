// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/socket_set.hpp"

#include <sys/epoll.h>

#include <array>

namespace trireme::comm {

SocketSet::SocketSet() : epoll_(base::File::adopt(::epoll_create1(EPOLL_CLOEXEC))) {}

bool SocketSet::add(const base::File& socket, std::uint64_t key) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0;
}

void SocketSet::remove(const base::File& socket) const {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
}

std::vector<std::uint64_t> SocketSet::ready(std::chrono::milliseconds limit) const {
  std::array<epoll_event, 256> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), int{events.size()},
                                 static_cast<int>(limit.count()));
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < count; ++i) keys.push_back(events[static_cast<std::size_t>(i)].data.u64);
  return keys;
}

}  // namespace trireme::comm
