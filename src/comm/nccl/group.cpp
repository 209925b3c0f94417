// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/group.hpp"

#include "comm/core/tensor_checks.hpp"
#include "comm/nccl/registration.hpp"
#include "comm/nccl/types.hpp"

#include <algorithm>
#include <utility>

namespace trireme::comm::nccl {
namespace {

using device::Tensor;

bool failed(Result result) {
  return result != Result::success && result != Result::in_progress;
}

/// Calls that NCCL takes as one; the first failure among them.
template <typename Calls>
Result in_group(const Api& api, const Calls& calls) {
  auto result = api.group_start();
  if (!failed(result)) result = calls();
  const auto ended = api.group_end();
  return failed(result) ? result : ended;
}

/// Whether the parts have one length, as those of NCCL's own collectives have.
bool are_equal(const Cuts& cuts) {
  for (std::size_t part = 2; part < cuts.size(); ++part) {
    if (cuts[part] - cuts[part - 1] != cuts[1] - cuts[0]) return false;
  }
  return true;
}

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

std::vector<NcclGroup::Step> NcclGroup::steps_of_parts(const Tensor& whole, const Cuts& cuts,
                                                       const PartCall& call) const {
  std::vector<OwnedPart> parts;
  for (int owner = 0; owner < size(); ++owner) {
    const auto index = static_cast<std::size_t>(owner);
    const auto begin = static_cast<std::size_t>(cuts[index]);
    const auto count = static_cast<std::size_t>(cuts[index + 1]) - begin;
    if (count > 0) {
      parts.push_back({owner, bytes_of(whole) + begin * device::size_of(whole.dtype()), count});
    }
  }
  std::vector<Step> steps;
  for (std::size_t first = 0; first < parts.size(); first += setting_.calls_per_group) {
    const auto last = std::min(parts.size(), first + setting_.calls_per_group);
    steps.emplace_back(
        [this, call,
         some = std::vector<OwnedPart>(parts.begin() + static_cast<std::ptrdiff_t>(first),
                                       parts.begin() + static_cast<std::ptrdiff_t>(last))](
            Comm* comm, void* stream) {
          return in_group(setting_.api(), [&] {
            auto result = Result::success;
            for (auto part = some.begin(); part != some.end() && !failed(result); ++part) {
              result = call(*part, comm, stream);
            }
            return result;
          });
        });
  }
  return steps;
}

Work NcclGroup::start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  if (are_equal(cuts)) {
    return collective("reduce_scatter", whole, {scatter_step(whole, part.raw(), count_of(part))});
  }
  const auto reduce = [=, this](const OwnedPart& each, Comm* comm, void* stream) {
    void* const sum = each.owner == rank() ? part.raw() : nullptr;
    return setting_.api().reduce(each.begin, sum, each.count, type_of(whole), Reduction::sum,
                                 each.owner, comm, stream);
  };
  return collective("reduce_scatter", whole, steps_of_parts(whole, cuts, reduce));
}

Work NcclGroup::start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  if (are_equal(cuts)) {
    return collective("all_gather", whole, {gather_step(part.raw(), whole, count_of(part))});
  }
  const auto broadcast = [=, this](const OwnedPart& each, Comm* comm, void* stream) {
    const void* const from = each.owner == rank() ? part.raw() : each.begin;
    return setting_.api().broadcast(from, each.begin, each.count, type_of(whole), each.owner, comm,
                                    stream);
  };
  return collective("all_gather", whole, steps_of_parts(whole, cuts, broadcast));
}

Work NcclGroup::start_all_to_all(const Tensor& from, const Tensor& to) {
  expect_alike(from, to, size());
  const auto count = count_of(from) / static_cast<std::size_t>(size());
  return collective(
      "all_to_all", from, {[=, this](Comm* comm, void* stream) {
        const auto& api = setting_.api();
        return in_group(api, [&] {
          auto result = Result::success;
          for (int peer = 0; peer < size() && !failed(result); ++peer) {
            result = api.send(part_of(from, count, peer), count, type_of(from), peer, comm, stream);
            if (failed(result)) break;
            result = api.receive(part_of(to, count, peer), count, type_of(to), peer, comm, stream);
          }
          return result;
        });
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
