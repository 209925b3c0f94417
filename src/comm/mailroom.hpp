#pragma once

#include "operation.hpp"
#include "shared_memory.hpp"
#include "streaming_copy.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace trireme::comm {

/// Messages between the ranks of a node: one stream of bytes for each ordered pair, in a ring of
/// shared memory. A message is a header and its bytes; tags are matched by the receiver, which
/// keeps messages that nobody has asked for yet.
class Mailroom {
 public:
  static constexpr std::size_t ring_bytes = std::size_t{1} << 20;

  static std::size_t bytes_needed(int ranks);

  Mailroom(std::byte* memory, int ranks, int self);

  /// How messages get into the rings.
  void use(Storing storing) { storing_ = storing; }

  /// A receive that waits for its message.
  struct Awaited {
    int tag = 0;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool arrived = false;
    /// Bytes of the message that came; another number than awaited is a defect.
    std::size_t arrived_bytes = 0;
  };
  /// A send that is not yet in the ring as a whole.
  struct Outgoing {
    int tag = 0;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::size_t written = 0;
    bool header_written = false;
    bool done() const { return header_written && written == bytes; }
  };

  std::shared_ptr<Awaited> await(int peer, int tag, std::byte* to, std::size_t bytes);
  std::shared_ptr<Outgoing> post(int peer, int tag, const std::byte* from, std::size_t bytes);

  /// Moves what fits; whether anything moved.
  bool push(int peer);
  bool pull(int peer);

 private:
  struct Ring;
  /// A message on its way in, or one that came before anybody asked for it.
  struct Incoming {
    int tag = 0;
    std::size_t bytes = 0;
    std::size_t read = 0;
    /// Whoever waits for it; else it goes to `kept`.
    std::shared_ptr<Awaited> awaited;
    std::vector<std::byte> kept;
    bool complete() const { return read == bytes; }
  };
  struct Peer {
    std::deque<std::shared_ptr<Outgoing>> outgoing;
    std::deque<std::shared_ptr<Awaited>> awaited;
    /// In the order of arrival; only the last may be incomplete.
    std::deque<Incoming> incoming;
  };

  Ring& ring(int source, int destination) const;
  void begin_message(Peer& peer, Ring& ring);
  static void deliver(Incoming& message);
  static std::byte* destination(Incoming& message);

  std::byte* memory_;
  int ranks_;
  int self_;
  Storing storing_ = Storing::ordinary;
  std::vector<Peer> peers_;
};

}  // namespace trireme::comm
