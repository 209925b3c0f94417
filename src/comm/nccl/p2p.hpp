// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/operation.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace trireme::comm::nccl {

/// Comm streams to and from one peer.
///
/// NCCL's messages have no tags: they match in the order of their issue, and a stream that waits in
/// one cannot go on with another. So sender and receiver first agree over the host's group, which
/// has tags: the receiver sends clear-to-send, the sender answers with a header: the message's
/// sequence number on the stream of their direction. An operation is put on a stream only when both
/// its ends exist.
class Peer {
 public:
  Peer(const Setting& setting, ProcessGroup& host, int position)
      : setting_(setting), host_(host), position_(position) {}

  ProcessGroup& host() const { return host_; }
  int position() const { return position_; }
  bool broken() const;

  /// Queues a send: sends of one tag go in the order of their start, whichever receiver is cleared
  /// first.
  void queue(int tag, const NcclOperation& send) { queues_[tag].push_back(&send); }
  bool is_next(int tag, const NcclOperation& send) { return queues_[tag].front() == &send; }
  void leave(int tag, const NcclOperation& send);

  /// Id of the communicator for sends, made by this rank.
  const UniqueId& id_of_outgoing();
  CommStream& outgoing();
  CommStream& incoming(const UniqueId& id);

  /// Memory to register with the communicators of both directions, whenever they are made.
  void add_memory(const device::Tensor& memory);
  void forget_memory(const device::Tensor& memory);

 private:
  CommStream& open(std::unique_ptr<CommStream>& comm_stream, const UniqueId& id, int end);

  Setting setting_;
  ProcessGroup& host_;
  int position_;
  bool has_id_ = false;
  UniqueId id_;
  std::vector<device::Tensor> memory_;
  std::unique_ptr<CommStream> outgoing_;
  std::unique_ptr<CommStream> incoming_;
  /// Sends that have not gone, by tag.
  std::map<int, std::deque<const NcclOperation*>> queues_;
};

/// Message of a receiver to the sender: its buffer is ready.
struct ClearToSend {
  std::uint64_t bytes = 0;
};
/// Answer of the sender.
struct SendHeader {
  std::uint64_t bytes = 0;
  std::uint64_t sequence = 0;
  UniqueId id;
};

/// Base of the two ends of a message.
class Message : public NcclOperation {
 public:
  Message(const Setting& setting, const OperationLabel& label, Peer& peer, const device::Tensor& x);
  std::vector<base::Rank> missing() const override { return {member(peer_.position())}; }

 protected:
  Peer& peer() { return peer_; }
  const device::Tensor& tensor() const { return tensor_; }
  ClearToSend& clear_to_send() { return clear_to_send_; }
  SendHeader& send_header() { return send_header_; }
  /// Fails if the other end has another number of bytes.
  void expect_bytes(std::uint64_t bytes) const;

 private:
  Peer& peer_;
  device::Tensor tensor_;
  ClearToSend clear_to_send_;
  SendHeader send_header_;
};

class Send final : public Message {
 public:
  Send(const Setting& setting, const OperationLabel& label, Peer& peer, const device::Tensor& x,
       int tag);
  Send(const Send&) = delete;
  Send& operator=(const Send&) = delete;
  ~Send() override;

 private:
  bool prepare() override;
  bool may_finish() const override { return answer_.done(); }

  int tag_;
  bool queued_ = true;
  Work awaited_;
  Work answer_;
};

class Receive final : public Message {
 public:
  Receive(const Setting& setting, const OperationLabel& label, Peer& peer, const device::Tensor& x,
          int tag);

 private:
  bool prepare() override;
  bool may_finish() const override { return announced_.done(); }

  Work announced_;
  Work awaited_;
};

}  // namespace trireme::comm::nccl
