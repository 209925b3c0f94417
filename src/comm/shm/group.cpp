// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/group.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "comm/core/tensor_checks.hpp"

#include <algorithm>

namespace trireme::comm {
namespace {

using device::Tensor;

/// Largest array whose members read all of it from each other: one phase instead of two.
constexpr std::size_t small_bytes = std::size_t{16} << 10;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Begins of `ranks` parts of `bytes`; all but the last ones are multiples of a cache line.
std::vector<std::size_t> begins_of(std::size_t bytes, std::size_t part, int ranks) {
  std::vector<std::size_t> begins;
  for (std::size_t rank = 0; rank <= static_cast<std::size_t>(ranks); ++rank) {
    begins.push_back(std::min(bytes, rank * part));
  }
  return begins;
}

std::uint64_t rounds_of(std::size_t bytes, std::size_t piece) {
  return (bytes + piece - 1) / piece;
}

/// Bytes of the longest part: all members have as many rounds as it needs.
std::size_t longest_part(const SharedPlan& plan) {
  std::size_t longest = 0;
  for (std::size_t part = 0; part + 1 < plan.begins.size(); ++part) {
    longest = std::max(longest, plan.begins[part + 1] - plan.begins[part]);
  }
  return longest;
}

class SendOperation final : public PendingOperation {
 public:
  SendOperation(ProgressEngine& progress, const OperationLabel& label, SharedP2p& p2p,
                SharedChannel& channel, std::shared_ptr<SharedP2p::PendingSend> message)
      : PendingOperation(progress, label),
        p2p_(p2p),
        channel_(channel),
        message_(std::move(message)) {}

  bool advance() override {
    const bool moved = p2p_.progress_sends(label().peer);
    if (moved) channel_.wake(label().peer);
    if (message_->done()) finish();
    return moved || done();
  }
  std::vector<base::Rank> missing() const override { return {member(label().peer)}; }
  bool wakes_waiter() const override { return true; }

 private:
  SharedP2p& p2p_;
  SharedChannel& channel_;
  std::shared_ptr<SharedP2p::PendingSend> message_;
};

class ReceiveOperation final : public PendingOperation {
 public:
  ReceiveOperation(ProgressEngine& progress, const OperationLabel& label, SharedP2p& p2p,
                   SharedChannel& channel, std::shared_ptr<SharedP2p::PostedReceive> receive)
      : PendingOperation(progress, label),
        p2p_(p2p),
        channel_(channel),
        receive_(std::move(receive)) {}

  bool advance() override {
    const bool moved = p2p_.progress_receives(label().peer);
    if (moved) channel_.wake(label().peer);
    if (!receive_->arrived) return moved;
    finish();
    if (receive_->arrived_bytes != receive_->bytes) {
      throw base::Error(base::ExitCode::internal,
                        base::format("{}: a message of {} bytes came where {} were receive; this "
                                     "is a defect of Trireme, please report it",
                                     text(), receive_->arrived_bytes, receive_->bytes));
    }
    return true;
  }
  std::vector<base::Rank> missing() const override { return {member(label().peer)}; }
  bool wakes_waiter() const override { return true; }

 private:
  SharedP2p& p2p_;
  SharedChannel& channel_;
  std::shared_ptr<SharedP2p::PostedReceive> receive_;
};

std::size_t channel_bytes(int ranks) {
  return rounded_up(SharedChannel::bytes_needed(ranks), 4096);
}

}  // namespace

std::size_t SharedGroup::bytes_needed(int ranks) {
  return channel_bytes(ranks) + SharedP2p::bytes_needed(ranks);
}

SharedGroup::SharedGroup(std::string group_name, std::vector<base::Rank> members, int self,
                         Wiring wiring)
    : ProcessGroup(std::move(group_name), std::move(members), self),
      wiring_(std::move(wiring)),
      channel_(*wiring_.memory, *wiring_.status, wiring_.members, self),
      p2p_(wiring_.memory->data() + channel_bytes(size()), size(), self) {}

Work SharedGroup::start(const char* operation, SharedPlan plan) {
  OperationLabel label{operation, name(), ranks(), ++collectives_started_, wiring_.timeout_seconds};
  label.bytes = plan.total_bytes;
  plan.into_slots = stores_.of(plan.total_bytes);
  if (plan.total_bytes >= beyond_caches(size())) plan.into_arrays = Storing::streaming;
  const auto first = next_;
  next_.scatter += plan.scatter_rounds;
  next_.gather += plan.gather_rounds;
  return work_of(std::make_unique<SharedOperation>(*wiring_.progress, label, channel_,
                                                   std::move(plan), first));
}

Work SharedGroup::small_all_reduce(const Tensor& x, ReduceOp op) {
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::small_all_reduce;
  plan.dtype = x.dtype();
  plan.op = op;
  plan.total_bytes = x.byte_count();
  plan.whole = plan.out = bytes_of(x);
  plan.gather_rounds = 1;
  plan.gather_piece = SharedChannel::gather_piece();
  // This rank's part is the whole; the peers' parts are read in place.
  plan.begins.assign(static_cast<std::size_t>(size()) + 1, 0);
  plan.begins[static_cast<std::size_t>(rank()) + 1] = plan.total_bytes;
  return start("all_reduce", std::move(plan));
}

Work SharedGroup::start_all_reduce(const Tensor& x, ReduceOp op) {
  expect_whole(x);
  if (x.byte_count() <= small_bytes) return small_all_reduce(x, op);
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::all_reduce;
  plan.dtype = x.dtype();
  plan.op = op;
  plan.total_bytes = x.byte_count();
  const auto part =
      rounded_up((plan.total_bytes + std::size_t(size()) - 1) / std::size_t(size()), 64);
  plan.begins = begins_of(plan.total_bytes, part, size());
  plan.from = plan.whole = bytes_of(x);
  plan.out = bytes_of(x) + plan.begins[static_cast<std::size_t>(rank())];
  plan.scatter_piece = plan.gather_piece =
      std::min(channel_.scatter_piece(), SharedChannel::gather_piece());
  plan.scatter_rounds = plan.gather_rounds = rounds_of(part, plan.scatter_piece);
  return start("all_reduce", std::move(plan));
}

Work SharedGroup::start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::reduce_scatter;
  plan.dtype = whole.dtype();
  plan.total_bytes = whole.byte_count();
  plan.begins = begins_of_parts(whole, size(), cuts);
  plan.from = bytes_of(whole);
  plan.out = bytes_of(part);
  plan.scatter_piece = channel_.scatter_piece();
  plan.scatter_rounds = rounds_of(longest_part(plan), plan.scatter_piece);
  return start("reduce_scatter", std::move(plan));
}

Work SharedGroup::start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::all_gather;
  plan.total_bytes = whole.byte_count();
  plan.begins = begins_of_parts(whole, size(), cuts);
  plan.whole = bytes_of(whole);
  copy_bytes(plan.whole + plan.begins[static_cast<std::size_t>(rank())], bytes_of(part),
             part.byte_count());
  plan.gather_piece = SharedChannel::gather_piece();
  plan.gather_rounds = rounds_of(longest_part(plan), plan.gather_piece);
  return start("all_gather", std::move(plan));
}

Work SharedGroup::start_all_to_all(const Tensor& from, const Tensor& to) {
  expect_alike(from, to, size());
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::all_to_all;
  plan.total_bytes = from.byte_count();
  const auto part = plan.total_bytes / static_cast<std::size_t>(size());
  plan.begins = begins_of(plan.total_bytes, part, size());
  plan.from = bytes_of(from);
  plan.out = bytes_of(to);
  plan.arrival = SharedPlan::Arrival::place;
  const auto mine = plan.begins[static_cast<std::size_t>(rank())];
  copy_bytes(plan.out + mine, plan.from + mine, part);
  plan.scatter_piece = channel_.scatter_piece();
  plan.scatter_rounds = rounds_of(part, plan.scatter_piece);
  return start("all_to_all", std::move(plan));
}

Work SharedGroup::start_broadcast(const Tensor& x, int root) {
  expect_whole(x);
  expect_position(root, size());
  SharedPlan plan;
  plan.kind = SharedPlan::Kind::broadcast;
  plan.total_bytes = x.byte_count();
  // Parts of a broadcast: the root's is everything, all others' are empty.
  plan.begins.assign(static_cast<std::size_t>(size()) + 1, plan.total_bytes);
  std::fill_n(plan.begins.begin(), root + 1, 0);
  plan.whole = bytes_of(x);
  plan.gather_piece = SharedChannel::gather_piece();
  plan.gather_rounds = rounds_of(plan.total_bytes, plan.gather_piece);
  return start("broadcast", std::move(plan));
}

OperationLabel SharedGroup::message_label(const char* operation, const Tensor& x, int peer,
                                          int tag) {
  return {operation, name(), ranks(),       ++messages_started_, wiring_.timeout_seconds,
          peer,      tag,    x.byte_count()};
}

Work SharedGroup::start_send(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  expect_position(peer, size());
  return work_of(std::make_unique<SendOperation>(
      *wiring_.progress, message_label("send", x, peer, tag), p2p_, channel_,
      p2p_.post_send(peer, tag, bytes_of(x), x.byte_count())));
}

Work SharedGroup::start_receive(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  expect_position(peer, size());
  return work_of(std::make_unique<ReceiveOperation>(
      *wiring_.progress, message_label("receive", x, peer, tag), p2p_, channel_,
      p2p_.post_receive(peer, tag, bytes_of(x), x.byte_count())));
}

void SharedGroup::barrier() {
  SharedPlan plan;
  plan.gather_rounds = 1;
  plan.begins.assign(static_cast<std::size_t>(size()) + 1, 0);
  plan.gather_piece = SharedChannel::gather_piece();
  start("barrier", std::move(plan)).wait();
}

}  // namespace trireme::comm
