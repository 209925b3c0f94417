#include "mailroom.hpp"

#include "arguments.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::comm {
namespace {

struct MessageHeader {
  std::uint64_t bytes;
  std::int64_t tag;
};

constexpr std::size_t capacity = Mailroom::ring_bytes;
/// A reader may begin while the writer goes on.
constexpr std::size_t piece_limit = std::size_t{128} << 10;

}  // namespace

/// Positions count bytes for the life of the group; zero bytes are an empty ring.
struct Mailroom::Ring {
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
  /// `to` may be null: the bytes are dropped.
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

std::size_t Mailroom::bytes_needed(int ranks) {
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * sizeof(Ring);
}

Mailroom::Mailroom(std::byte* memory, int ranks, int self)
    : memory_(memory), ranks_(ranks), self_(self), peers_(static_cast<std::size_t>(ranks)) {}

Mailroom::Ring& Mailroom::ring(int source, int destination) const {
  return reinterpret_cast<Ring*>(memory_)[source * ranks_ + destination];
}

std::shared_ptr<Mailroom::Outgoing> Mailroom::post(int peer, int tag, const std::byte* from,
                                                   std::size_t bytes) {
  auto message = std::make_shared<Outgoing>(Outgoing{tag, from, bytes});
  peers_[static_cast<std::size_t>(peer)].outgoing.push_back(message);
  return message;
}

std::shared_ptr<Mailroom::Awaited> Mailroom::await(int peer, int tag, std::byte* to,
                                                   std::size_t bytes) {
  auto awaited = std::make_shared<Awaited>(Awaited{tag, to, bytes});
  auto& from = peers_[static_cast<std::size_t>(peer)];
  const auto kept =
      std::find_if(from.incoming.begin(), from.incoming.end(),
                   [&](const Incoming& message) { return message.tag == tag && !message.awaited; });
  if (kept == from.incoming.end()) {
    from.awaited.push_back(awaited);
    return awaited;
  }
  kept->awaited = awaited;
  if (kept->complete()) {
    deliver(*kept);
    from.incoming.erase(kept);
  }
  return awaited;
}

void Mailroom::deliver(Incoming& message) {
  auto& awaited = *message.awaited;
  if (awaited.bytes == message.bytes && !message.kept.empty()) {
    copy_bytes(awaited.to, message.kept.data(), message.bytes);
  }
  awaited.arrived_bytes = message.bytes;
  awaited.arrived = true;
}

/// Where the rest of a message goes: to whoever asked before it began, else to memory of its own.
std::byte* Mailroom::destination(Incoming& message) {
  if (!message.kept.empty()) return message.kept.data() + message.read;
  const bool fits = message.awaited && message.awaited->bytes == message.bytes;
  return fits ? message.awaited->to + message.read : nullptr;
}

bool Mailroom::push(int peer) {
  auto& to = peers_[static_cast<std::size_t>(peer)];
  auto& out = ring(self_, peer);
  bool moved = false;
  while (!to.outgoing.empty()) {
    auto& message = *to.outgoing.front();
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
      to.outgoing.pop_front();
    } else if (piece == 0) {
      return moved;
    }
  }
  return moved;
}

void Mailroom::begin_message(Peer& peer, Ring& in) {
  MessageHeader header{};
  in.get(&header, sizeof header);
  Incoming message;
  message.tag = static_cast<int>(header.tag);
  message.bytes = header.bytes;
  const auto asked = std::find_if(peer.awaited.begin(), peer.awaited.end(),
                                  [&](const auto& awaited) { return awaited->tag == message.tag; });
  if (asked != peer.awaited.end()) {
    message.awaited = *asked;
    peer.awaited.erase(asked);
  } else {
    message.kept.resize(message.bytes);
  }
  peer.incoming.push_back(std::move(message));
}

bool Mailroom::pull(int peer) {
  auto& from = peers_[static_cast<std::size_t>(peer)];
  auto& in = ring(peer, self_);
  bool moved = false;
  for (;;) {
    if (from.incoming.empty() || from.incoming.back().complete()) {
      // Without anybody waiting, messages stay in the ring, and their sender waits.
      if (from.awaited.empty() || in.filled() < sizeof(MessageHeader)) return moved;
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
    if (message.awaited) {
      deliver(message);
      from.incoming.pop_back();
    }
  }
}

}  // namespace trireme::comm
