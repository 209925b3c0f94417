// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/p2p.hpp"

#include "trireme/base/format.hpp"

#include "comm/nccl/types.hpp"

#include <algorithm>

namespace trireme::comm::nccl {
namespace {

/// Tensor of a struct for the host's group.
template <typename T>
device::Tensor words_of(T& message) {
  static_assert(sizeof(T) % sizeof(std::int32_t) == 0);
  return {&message, device::DType::i32, {sizeof(T) / sizeof(std::int32_t)}};
}

/// Tags of the two messages of the host that each message between devices needs.
int clear_to_send_tag(int tag) {
  return 2 * tag;
}
int send_header_tag(int tag) {
  return 2 * tag + 1;
}

}  // namespace

bool Peer::broken() const {
  const auto ended = [](const auto& comm_stream) {
    return comm_stream && comm_stream->communicator.aborted();
  };
  return ended(outgoing_) || ended(incoming_);
}

void Peer::leave(int tag, const NcclOperation& send) {
  const auto queue = queues_.find(tag);
  std::erase(queue->second, &send);
  if (queue->second.empty()) queues_.erase(queue);
}

const UniqueId& Peer::id_of_outgoing() {
  if (has_id_) return id_;
  const auto result = setting_.api().get_unique_id(&id_);
  if (result != Result::success) {
    throw base::Error(base::ExitCode::peer,
                      base::format("NCCL {} makes no id for messages to rank {}: {}; "
                                   "comm.backend = staged does without it",
                                   nccl_version_text(setting_.library.version),
                                   host_.ranks()[static_cast<std::size_t>(position_)].value(),
                                   setting_.api().get_error_string(result)));
  }
  has_id_ = true;
  return id_;
}

CommStream& Peer::outgoing() {
  return open(outgoing_, id_of_outgoing(), 0);
}

CommStream& Peer::incoming(const UniqueId& id) {
  return open(incoming_, id, 1);
}

CommStream& Peer::open(std::unique_ptr<CommStream>& comm_stream, const UniqueId& id, int end) {
  if (comm_stream) return *comm_stream;
  comm_stream = std::make_unique<CommStream>(setting_, device::Priority::awaited);
  for (const auto& memory : memory_) comm_stream->memory.add(memory);
  // Side effect: the handle's owner makes the device the calling thread's own.
  comm_stream->stream->handle();
  comm_stream->communicator.begin([&](Comm** comm, Config* config) {
    return setting_.api().init_rank(comm, 2, id, end, config);
  });
  return *comm_stream;
}

void Peer::add_memory(const device::Tensor& memory) {
  memory_.push_back(memory);
  for (auto* comm_stream : {outgoing_.get(), incoming_.get()}) {
    if (comm_stream != nullptr) comm_stream->memory.add(memory);
  }
}

void Peer::forget_memory(const device::Tensor& memory) {
  std::erase_if(memory_, [&](const auto& each) { return each.raw() == memory.raw(); });
  for (auto* comm_stream : {outgoing_.get(), incoming_.get()}) {
    if (comm_stream != nullptr) comm_stream->memory.forget(setting_, *comm_stream, memory);
  }
}

Message::Message(const Setting& setting, const OperationLabel& label, Peer& peer,
                 const device::Tensor& x)
    : NcclOperation(setting, label), peer_(peer), tensor_(x) {}

void Message::expect_bytes(std::uint64_t bytes) const {
  if (bytes == tensor_.byte_count()) return;
  throw base::Error(base::ExitCode::internal,
                    base::format("{} has {} bytes here and {} there (this is a defect of Trireme, "
                                 "please report it)",
                                 text(), tensor_.byte_count(), bytes));
}

Send::Send(const Setting& setting, const OperationLabel& label, Peer& peer, const device::Tensor& x,
           int tag)
    : Message(setting, label, peer, x),
      tag_(tag),
      awaited_(peer.host().start_receive(words_of(clear_to_send()), peer.position(),
                                         clear_to_send_tag(tag))) {
  peer.queue(tag_, *this);
}

Send::~Send() {
  if (queued_) peer().leave(tag_, *this);
}

bool Send::prepare() {
  if (!awaited_.done() || !peer().is_next(tag_, *this)) return false;
  peer().leave(tag_, *this);
  queued_ = false;
  const auto bytes = tensor().byte_count();
  send_header() = {bytes, 0, {}};
  const bool travels = bytes > 0 && clear_to_send().bytes == bytes;
  if (travels) {
    auto& comm_stream = peer().outgoing();
    send_header().id = peer().id_of_outgoing();
    send_header().sequence = comm_stream.sequence_count++;
    enter(comm_stream, send_header().sequence, {[this](Comm* comm, void* stream) {
            return setting().api().send(tensor().raw(), count_of(tensor()), type_of(tensor()), 1,
                                        comm, stream);
          }});
  } else {
    enter_nothing();
  }
  answer_ =
      peer().host().start_send(words_of(send_header()), peer().position(), send_header_tag(tag_));
  expect_bytes(clear_to_send().bytes);
  return true;
}

Receive::Receive(const Setting& setting, const OperationLabel& label, Peer& peer,
                 const device::Tensor& x, int tag)
    : Message(setting, label, peer, x) {
  clear_to_send().bytes = x.byte_count();
  auto& host = peer.host();
  awaited_ = host.start_receive(words_of(send_header()), peer.position(), send_header_tag(tag));
  announced_ = host.start_send(words_of(clear_to_send()), peer.position(), clear_to_send_tag(tag));
}

bool Receive::prepare() {
  if (!awaited_.done()) return false;
  expect_bytes(send_header().bytes);
  if (send_header().bytes == 0) {
    enter_nothing();
    return true;
  }
  auto& comm_stream = peer().incoming(send_header().id);
  comm_stream.sequence_count = std::max(comm_stream.sequence_count, send_header().sequence + 1);
  enter(comm_stream, send_header().sequence, {[this](Comm* comm, void* stream) {
          return setting().api().receive(tensor().raw(), count_of(tensor()), type_of(tensor()), 0,
                                         comm, stream);
        }});
  return true;
}

}  // namespace trireme::comm::nccl
