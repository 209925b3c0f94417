// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/group.hpp"

#include "comm/core/tensor_checks.hpp"
#include "comm/nccl/registration.hpp"
#include "comm/nccl/types.hpp"

#include <utility>

namespace trireme::comm::nccl {
namespace {

using device::Tensor;

/// The begin of part number `position` of equal parts.
std::byte* part_of(const Tensor& whole, std::size_t part_count, int position) {
  return bytes_of(whole) +
         part_count * static_cast<std::size_t>(position) * device::size_of(whole.dtype());
}

/// Registration of memory for a group's messages.
class OfMessages final : public Registration {
 public:
  OfMessages(NcclGroup& group, const Tensor& memory) : group_(group), memory_(memory) {}
  OfMessages(const OfMessages&) = delete;
  OfMessages& operator=(const OfMessages&) = delete;
  ~OfMessages() override { group_.forget_for_messages(memory_); }

 private:
  NcclGroup& group_;
  Tensor memory_;
};

}  // namespace

NcclGroup::NcclGroup(const Setting& setting, std::unique_ptr<ProcessGroup> host,
                     std::unique_ptr<CommStream> comm_stream)
    : ProcessGroup(host->name(), host->ranks(), host->rank()),
      setting_(setting),
      host_(std::move(host)),
      comm_stream_(std::move(comm_stream)) {}

Work NcclGroup::collective(const char* operation, const Tensor& whole, std::vector<Step> steps) {
  TRIREME_EXPECT(!comm_stream_->communicator.aborted(),
                 "a process group is not used after a failure");
  OperationLabel label{operation, name(), ranks(), ++collectives_started_,
                       setting_.timeout_seconds};
  label.bytes = whole.byte_count();
  if (label.bytes == 0) return {};
  return work_of(std::make_unique<Collective>(setting_, label, *comm_stream_, std::move(steps)));
}

NcclGroup::Step NcclGroup::scatter_step(const Tensor& whole, void* part,
                                        std::size_t part_count) const {
  return [=, this](Comm* comm, void* stream) {
    return setting_.api().reduce_scatter(whole.raw(), part, part_count, type_of(whole),
                                         Reduction::sum, comm, stream);
  };
}

NcclGroup::Step NcclGroup::gather_step(const void* part, const Tensor& whole,
                                       std::size_t part_count) const {
  return [=, this](Comm* comm, void* stream) {
    return setting_.api().all_gather(part, whole.raw(), part_count, type_of(whole), comm, stream);
  };
}

Work NcclGroup::start_all_reduce(const Tensor& x, ReduceOp op) {
  expect_whole(x);
  const auto count = count_of(x);
  const auto parts = static_cast<std::size_t>(size());
  if (op == ReduceOp::sum && parts > 2 && count % parts == 0) {
    // Reduce-scatter and all-gather, which sharded optimizers call separately, so that both give
    // the same bits: the library's own all-reduce may add in another order. A sum of two numbers
    // has only one order.
    auto* const mine = part_of(x, count / parts, rank());
    return collective("all_reduce", x,
                      {scatter_step(x, mine, count / parts), gather_step(mine, x, count / parts)});
  }
  return collective("all_reduce", x, {[=, this](Comm* comm, void* stream) {
                      return setting_.api().all_reduce(x.raw(), x.raw(), count, type_of(x),
                                                       reduction_of(op), comm, stream);
                    }});
}

Work NcclGroup::start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) {
  TRIREME_EXPECT(cuts.empty(), "groups of devices take equal parts");
  expect_parts(whole, part, size());
  return collective("reduce_scatter", whole, {scatter_step(whole, part.raw(), count_of(part))});
}

Work NcclGroup::start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) {
  TRIREME_EXPECT(cuts.empty(), "groups of devices take equal parts");
  expect_parts(whole, part, size());
  return collective("all_gather", whole, {gather_step(part.raw(), whole, count_of(part))});
}

Work NcclGroup::start_all_to_all(const Tensor& from, const Tensor& to) {
  expect_alike(from, to, size());
  const auto count = count_of(from) / static_cast<std::size_t>(size());
  return collective(
      "all_to_all", from, {[=, this](Comm* comm, void* stream) {
        const auto& api = setting_.api();
        auto result = api.group_start();
        for (int peer = 0; peer < size() && result == Result::success; ++peer) {
          result = api.send(part_of(from, count, peer), count, type_of(from), peer, comm, stream);
          if (result != Result::success) break;
          result = api.receive(part_of(to, count, peer), count, type_of(to), peer, comm, stream);
        }
        const auto ended = api.group_end();
        return result == Result::success ? ended : result;
      }});
}

Work NcclGroup::start_broadcast(const Tensor& x, int root) {
  expect_whole(x);
  expect_position(root, size());
  return collective("broadcast", x, {[=, this](Comm* comm, void* stream) {
                      return setting_.api().broadcast(x.raw(), x.raw(), count_of(x), type_of(x),
                                                      root, comm, stream);
                    }});
}

Peer& NcclGroup::peer_at(int position) {
  expect_position(position, size());
  TRIREME_EXPECT(position != rank(), "a message to oneself needs no NCCL");
  auto& peer = peers_[position];
  if (!peer) {
    peer = std::make_unique<Peer>(setting_, *host_, position);
    for (const auto& memory : of_messages_) peer->add_memory(memory);
  }
  TRIREME_EXPECT(!peer->broken(), "a process group is not used after a failure");
  return *peer;
}

OperationLabel NcclGroup::message_label(const char* operation, const Tensor& x, int peer, int tag) {
  return {operation, name(), ranks(),       ++messages_started_, setting_.timeout_seconds,
          peer,      tag,    x.byte_count()};
}

Work NcclGroup::start_send(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  auto& other = peer_at(peer);
  return work_of(
      std::make_unique<Send>(setting_, message_label("send", x, peer, tag), other, x, tag));
}

Work NcclGroup::start_receive(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  auto& other = peer_at(peer);
  return work_of(
      std::make_unique<Receive>(setting_, message_label("receive", x, peer, tag), other, x, tag));
}

std::unique_ptr<Registration> NcclGroup::register_memory(const Tensor& memory, Offsets offsets) {
  expect_whole(memory);
  const OperationLabel label{"register_memory", name(), ranks(), ++collectives_started_,
                             setting_.timeout_seconds};
  return nccl::register_memory(setting_, *comm_stream_, label, {memory, offsets, *host_});
}

std::unique_ptr<Registration> NcclGroup::register_for_messages(const Tensor& memory) {
  expect_whole(memory);
  if (!takes_buffers(setting_, memory)) return nullptr;
  of_messages_.push_back(memory);
  for (auto& [position, peer] : peers_) peer->add_memory(memory);
  return std::make_unique<OfMessages>(*this, memory);
}

void NcclGroup::forget_for_messages(const Tensor& memory) {
  std::erase_if(of_messages_, [&](const auto& each) { return each.raw() == memory.raw(); });
  for (auto& [position, peer] : peers_) peer->forget_memory(memory);
}

void NcclGroup::barrier() {
  ++collectives_started_;
  setting_.device->synchronize();
  host_->barrier();
}

}  // namespace trireme::comm::nccl
