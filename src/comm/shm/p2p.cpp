// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/p2p.hpp"

#include "comm/core/tensor_checks.hpp"

#include <algorithm>
#include <atomic>

namespace trireme::comm {
namespace {

struct MessageHeader {
  std::uint64_t bytes;
  std::int64_t tag;
};

constexpr std::size_t capacity = SharedP2p::ring_bytes;
/// Piece after which a reader may begin while the writer continues.
constexpr std::size_t piece_limit = std::size_t{128} << 10;

}  // namespace

/// Positions count bytes for the life of the group; zero bytes are an empty ring.
struct SharedP2p::Ring {
  alignas(128) std::atomic<std::uint64_t> written;
  alignas(128) std::atomic<std::uint64_t> read;
  alignas(128) std::byte data[capacity];

  std::size_t filled() const {
    return written.load(std::memory_order_acquire) - read.load(std::memory_order_acquire);
  }
  void put(Storing how, const void* from, std::size_t bytes) {
    const auto position = written.load(std::memory_order_relaxed);
    const auto at = position % capacity;
    const auto first = std::min(bytes, capacity - at);
    store_bytes(how, data + at, static_cast<const std::byte*>(from), first);
    store_bytes(how, data, static_cast<const std::byte*>(from) + first, bytes - first);
    written.store(position + bytes, std::memory_order_release);
  }
  /// Reads bytes from the ring; `to` may be null: they are dropped.
  void get(void* to, std::size_t bytes) {
    const auto position = read.load(std::memory_order_relaxed);
    const auto at = position % capacity;
    const auto first = std::min(bytes, capacity - at);
    if (to != nullptr) {
      copy_bytes(static_cast<std::byte*>(to), data + at, first);
      copy_bytes(static_cast<std::byte*>(to) + first, data, bytes - first);
    }
    read.store(position + bytes, std::memory_order_release);
  }
};

std::size_t SharedP2p::bytes_needed(int ranks) {
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * sizeof(Ring);
}

SharedP2p::SharedP2p(std::byte* memory, int ranks, int self)
    : memory_(memory), ranks_(ranks), self_(self), peers_(static_cast<std::size_t>(ranks)) {}

SharedP2p::Ring& SharedP2p::ring(int source, int destination) const {
  return reinterpret_cast<Ring*>(memory_)[source * ranks_ + destination];
}

std::shared_ptr<SharedP2p::PendingSend> SharedP2p::post_send(int peer, int tag,
                                                             const std::byte* from,
                                                             std::size_t bytes) {
  auto message = std::make_shared<PendingSend>(PendingSend{tag, from, bytes});
  peers_[static_cast<std::size_t>(peer)].sends.push_back(message);
  return message;
}

std::shared_ptr<SharedP2p::PostedReceive> SharedP2p::post_receive(int peer, int tag, std::byte* to,
                                                                  std::size_t bytes) {
  auto receive = std::make_shared<PostedReceive>(PostedReceive{tag, to, bytes});
  auto& from = peers_[static_cast<std::size_t>(peer)];
  const auto buffered =
      std::find_if(from.incoming.begin(), from.incoming.end(),
                   [&](const Incoming& message) { return message.tag == tag && !message.receive; });
  if (buffered == from.incoming.end()) {
    from.posted.push_back(receive);
    return receive;
  }
  buffered->receive = receive;
  if (buffered->complete()) {
    deliver(*buffered);
    from.incoming.erase(buffered);
  }
  return receive;
}

void SharedP2p::deliver(Incoming& message) {
  auto& receive = *message.receive;
  if (receive.bytes == message.bytes && !message.buffered.empty()) {
    copy_bytes(receive.to, message.buffered.data(), message.bytes);
  }
  receive.arrived_bytes = message.bytes;
  receive.arrived = true;
}

/// Destination of the rest of a message: its posted receive, or a buffer of its own.
std::byte* SharedP2p::destination(Incoming& message) {
  if (!message.buffered.empty()) return message.buffered.data() + message.read;
  const bool fits = message.receive && message.receive->bytes == message.bytes;
  return fits ? message.receive->to + message.read : nullptr;
}

bool SharedP2p::progress_sends(int peer) {
  auto& to = peers_[static_cast<std::size_t>(peer)];
  auto& out = ring(self_, peer);
  bool moved = false;
  while (!to.sends.empty()) {
    auto& message = *to.sends.front();
    auto room = capacity - out.filled();
    if (!message.header_written) {
      if (room < sizeof(MessageHeader)) return moved;
      const MessageHeader header{message.bytes, message.tag};
      out.put(Storing::ordinary, &header, sizeof header);
      room -= sizeof header;
      message.header_written = true;
      moved = true;
    }
    const auto piece = std::min({room, message.bytes - message.written, piece_limit});
    out.put(storing_, message.from + message.written, piece);
    message.written += piece;
    moved = moved || piece > 0;
    if (message.done()) {
      to.sends.pop_front();
    } else if (piece == 0) {
      return moved;
    }
  }
  return moved;
}

void SharedP2p::begin_message(Peer& peer, Ring& in) {
  MessageHeader header{};
  in.get(&header, sizeof header);
  Incoming message;
  message.tag = static_cast<int>(header.tag);
  message.bytes = header.bytes;
  const auto asked = std::find_if(peer.posted.begin(), peer.posted.end(),
                                  [&](const auto& receive) { return receive->tag == message.tag; });
  if (asked != peer.posted.end()) {
    message.receive = *asked;
    peer.posted.erase(asked);
  } else {
    message.buffered.resize(message.bytes);
  }
  peer.incoming.push_back(std::move(message));
}

bool SharedP2p::progress_receives(int peer) {
  auto& from = peers_[static_cast<std::size_t>(peer)];
  auto& in = ring(peer, self_);
  bool moved = false;
  for (;;) {
    if (from.incoming.empty() || from.incoming.back().complete()) {
      // Messages without a posted receive stay in the ring, and their sender waits.
      if (from.posted.empty() || in.filled() < sizeof(MessageHeader)) return moved;
      begin_message(from, in);
      moved = true;
    }
    auto& message = from.incoming.back();
    const auto piece = std::min({in.filled(), message.bytes - message.read, piece_limit});
    in.get(destination(message), piece);
    message.read += piece;
    moved = moved || piece > 0;
    if (!message.complete()) {
      if (piece == 0) return moved;
      continue;
    }
    if (message.receive) {
      deliver(message);
      from.incoming.pop_back();
    }
  }
}

}  // namespace trireme::comm
