// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <thread>

namespace trireme::nccl_net {
namespace {

/// Largest number of sends: those of one group of receives come one by one.
constexpr std::size_t most_sends = std::size_t{max_requests} * max_grouped_receives;
/// Largest number of receives with their flushes.
constexpr std::size_t most_receives = std::size_t{2} * max_requests;
constexpr std::chrono::milliseconds look_interval{20};
/// Time in which data sent before a goodbye may still arrive.
constexpr std::chrono::seconds after_goodbye{5};
/// Time for closing: a peer that has stopped making progress answers no flush.
constexpr double closing_seconds = 1.0;

}  // namespace

Connection::Connection(std::shared_ptr<Worker> worker, Direction direction, base::File socket,
                       std::uint32_t number, std::string peer)
    : worker_(std::move(worker)),
      direction_(direction),
      socket_(std::move(socket)),
      number_(number),
      peer_(std::move(peer)),
      requests_(direction == Direction::sends ? most_sends : most_receives) {
  for (auto& request : requests_) request.connection = this;
  base::success_or_throw(base::tcp::enable_keepalive(socket_));
}

Connection::~Connection() {
  const std::lock_guard lock(worker_->mutex());
  // A dead peer has nothing to receive.
  worker_->close(endpoint_, peer_state_ == PeerState::gone ? 0.0 : closing_seconds);
  const auto end = Clock::now() + std::chrono::seconds(1);
  for (auto& request : requests_) {
    for (auto& operation : request.operations) {
      worker_->cancel(operation);
      // UCX writes into the operation until it is done.
      while (!operation.done && Clock::now() < end) worker_->progress();
    }
  }
  say_goodbye(socket_);
}

void Connection::open_way(const std::vector<std::byte>& address) {
  worker_->connect(address, endpoint_);
}

std::uint64_t Connection::tag_of(int tag) const {
  return std::uint64_t{number_} << 32 | static_cast<std::uint32_t>(tag);
}

Request* Connection::take(int parts) {
  for (auto& request : requests_) {
    if (request.in_use) continue;
    request.in_use = true;
    request.parts = parts;
    return &request;
  }
  return nullptr;
}

Request* Connection::send(const void* data, std::size_t size, int tag) {
  const std::lock_guard lock(worker_->mutex());
  auto* request = take(1);
  if (request == nullptr) return nullptr;
  worker_->send(endpoint_, data, size, tag_of(tag), request->operations[0]);
  return request;
}

Request* Connection::receive(int count, void** data, const std::size_t* sizes, const int* tags) {
  if (count < 1 || count > max_grouped_receives) {
    throw base::Error(
        base::ExitCode::usage,
        base::format("a group of {} receives (1 to {} are possible)", count, max_grouped_receives));
  }
  const std::lock_guard lock(worker_->mutex());
  auto* request = take(count);
  if (request == nullptr) return nullptr;
  for (int i = 0; i < count; ++i) {
    worker_->receive(data[i], sizes[i], tag_of(tags[i]),
                     request->operations[static_cast<std::size_t>(i)]);
  }
  return request;
}

Request* Connection::flush(int count, void** data, const int* sizes, void** registrations) {
  const std::lock_guard lock(worker_->mutex());
  auto* request = take(std::min(count, max_grouped_receives));
  if (request == nullptr) return nullptr;
  for (int i = 0; i < request->parts; ++i) {
    auto* registration = static_cast<Registration*>(registrations[i]);
    auto& operation = request->operations[static_cast<std::size_t>(i)];
    operation = {};
    if (sizes[i] > 0 && registration != nullptr) {
      worker_->read_back(data[i], *registration, operation);
    }
  }
  return request;
}

void Connection::look_after_peer() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + look_interval;
  if (peer_state_ == PeerState::alive) {
    peer_state_ = look_at_peer(socket_);
    if (peer_state_ == PeerState::said_goodbye) goodbye_at_ = now;
  }
  if (peer_state_ == PeerState::said_goodbye && now < goodbye_at_ + after_goodbye) return;
  if (peer_state_ == PeerState::alive) return;
  throw base::Error(
      base::ExitCode::peer,
      base::format("peer {} {} while connection {} waits for it", peer_,
                   peer_state_ == PeerState::gone ? "is gone" : "has closed its side", number_));
}

/// Adds the peer's death to a failed transfer; the transfer may fail before the socket breaks.
void Connection::explain(ucs_status_t status) {
  for (int look = 0; look < 10; ++look) {
    next_look_ = {};
    look_after_peer();
    std::this_thread::sleep_for(look_interval);
  }
  throw_ucx(direction_ == Direction::sends ? "send" : "receive", status);
}

bool Connection::test(Request& request, int* sizes) {
  const std::lock_guard lock(worker_->mutex());
  worker_->progress();
  bool done = true;
  for (int i = 0; i < request.parts; ++i) {
    const auto& operation = request.operations[static_cast<std::size_t>(i)];
    done = done && operation.done;
    if (operation.done && operation.status != UCS_OK) explain(operation.status);
  }
  if (!done) {
    look_after_peer();
    return false;
  }
  if (sizes != nullptr) {
    for (int i = 0; i < request.parts; ++i) {
      sizes[i] = static_cast<int>(request.operations[static_cast<std::size_t>(i)].bytes);
    }
  }
  request.in_use = false;
  has_sent_ = direction_ == Direction::sends;
  return true;
}

std::string Connection::news() {
  if (!has_sent_ || has_told_) return {};
  has_told_ = true;
  const std::lock_guard lock(worker_->mutex());
  const auto way = worker_->way_of(endpoint_);
  return base::format("to {} over {}", peer_, way.empty() ? "an unknown way" : way);
}

}  // namespace trireme::nccl_net
