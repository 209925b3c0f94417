#include "comm/nccl/message.hpp"

#include "trireme/base/format.hpp"

#include "comm/nccl/types.hpp"

#include <algorithm>

namespace trireme::comm::nccl {
namespace {

/// A struct as the host's group sends it.
template <typename Letter>
device::Tensor words_of(Letter& letter) {
  static_assert(sizeof(Letter) % sizeof(std::int32_t) == 0);
  return {&letter, device::DType::i32, {sizeof(Letter) / sizeof(std::int32_t)}};
}

/// Both letters of a message have tags of their own.
int ready_tag(int tag) {
  return 2 * tag;
}
int going_tag(int tag) {
  return 2 * tag + 1;
}

}  // namespace

bool Peer::broken() const {
  const auto ended = [](const auto& lane) { return lane && lane->communicator.aborted(); };
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

Lane& Peer::outgoing() {
  return open(outgoing_, id_of_outgoing(), 0);
}

Lane& Peer::incoming(const UniqueId& id) {
  return open(incoming_, id, 1);
}

Lane& Peer::open(std::unique_ptr<Lane>& lane, const UniqueId& id, int end) {
  if (lane) return *lane;
  lane = std::make_unique<Lane>(setting_, device::Priority::awaited);
  for (const auto& memory : memory_) lane->memory.add(memory);
  // The handle's owner makes the device the calling thread's own.
  lane->stream->handle();
  lane->communicator.begin([&](Comm** comm, Config* config) {
    return setting_.api().init_rank(comm, 2, id, end, config);
  });
  return *lane;
}

void Peer::add_memory(const device::Tensor& memory) {
  memory_.push_back(memory);
  for (auto* lane : {outgoing_.get(), incoming_.get()}) {
    if (lane != nullptr) lane->memory.add(memory);
  }
}

void Peer::forget_memory(const device::Tensor& memory) {
  std::erase_if(memory_, [&](const auto& each) { return each.raw() == memory.raw(); });
  for (auto* lane : {outgoing_.get(), incoming_.get()}) {
    if (lane != nullptr) lane->memory.forget(setting_, *lane, memory);
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
      awaited_(peer.host().start_receive(words_of(ready()), peer.position(), ready_tag(tag))) {
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
  going() = {bytes, 0, {}};
  const bool travels = bytes > 0 && ready().bytes == bytes;
  if (travels) {
    auto& lane = peer().outgoing();
    going().id = peer().id_of_outgoing();
    going().ticket = lane.tickets++;
    enter(lane, going().ticket, {[this](Comm* comm, void* stream) {
            return setting().api().send(tensor().raw(), count_of(tensor()), type_of(tensor()), 1,
                                        comm, stream);
          }});
  } else {
    enter_nothing();
  }
  answer_ = peer().host().start_send(words_of(going()), peer().position(), going_tag(tag_));
  expect_bytes(ready().bytes);
  return true;
}

Receive::Receive(const Setting& setting, const OperationLabel& label, Peer& peer,
                 const device::Tensor& x, int tag)
    : Message(setting, label, peer, x) {
  ready().bytes = x.byte_count();
  auto& host = peer.host();
  awaited_ = host.start_receive(words_of(going()), peer.position(), going_tag(tag));
  announced_ = host.start_send(words_of(ready()), peer.position(), ready_tag(tag));
}

bool Receive::prepare() {
  if (!awaited_.done()) return false;
  expect_bytes(going().bytes);
  if (going().bytes == 0) {
    enter_nothing();
    return true;
  }
  auto& lane = peer().incoming(going().id);
  lane.tickets = std::max(lane.tickets, going().ticket + 1);
  enter(lane, going().ticket, {[this](Comm* comm, void* stream) {
          return setting().api().receive(tensor().raw(), count_of(tensor()), type_of(tensor()), 0,
                                         comm, stream);
        }});
  return true;
}

}  // namespace trireme::comm::nccl
