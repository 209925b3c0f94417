// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/operation.hpp"
#include "comm/shm/segment.hpp"
#include "comm/shm/streaming_copy.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace trireme::comm {

/// Messages between the ranks of a node: one stream of bytes for each ordered pair, in a ring of
/// shared memory. A message is a header and its bytes; tags are matched by the receiver, which
/// buffers unexpected messages: those without a posted receive.
class SharedP2p {
 public:
  static constexpr std::size_t ring_bytes = std::size_t{1} << 20;

  static std::size_t bytes_needed(int ranks);

  SharedP2p(std::byte* memory, int ranks, int self);

  /// Chooses the stores that copy messages into rings.
  void use(Storing storing) { storing_ = storing; }

  /// A receive that waits for its message.
  struct PostedReceive {
    int tag = 0;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    bool arrived = false;
    /// Bytes of the message that came; another number than `bytes` is a defect.
    std::size_t arrived_bytes = 0;
  };
  /// A send of which not all bytes are in the ring yet.
  struct PendingSend {
    int tag = 0;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::size_t written = 0;
    bool header_written = false;
    bool done() const { return header_written && written == bytes; }
  };

  std::shared_ptr<PostedReceive> post_receive(int peer, int tag, std::byte* to, std::size_t bytes);
  std::shared_ptr<PendingSend> post_send(int peer, int tag, const std::byte* from,
                                         std::size_t bytes);

  /// Moves the bytes that fit; true if anything moved.
  bool progress_sends(int peer);
  bool progress_receives(int peer);

 private:
  struct Ring;
  /// Incoming message, or an unexpected one.
  struct Incoming {
    int tag = 0;
    std::size_t bytes = 0;
    std::size_t read = 0;
    /// Posted receive that the message matches; without one it goes to `buffered`.
    std::shared_ptr<PostedReceive> receive;
    std::vector<std::byte> buffered;
    bool complete() const { return read == bytes; }
  };
  struct Peer {
    std::deque<std::shared_ptr<PendingSend>> sends;
    std::deque<std::shared_ptr<PostedReceive>> posted;
    /// Incoming messages in the order of arrival; only the last may be incomplete.
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
