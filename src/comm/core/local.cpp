// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/comm/peer_error.hpp"

#include "comm/core/tensor_checks.hpp"

#include <deque>
#include <map>

namespace trireme::comm {
namespace {

using device::Tensor;

/// Destination of a message to oneself. Lives until both the Work and the mailbox are done.
struct Awaited {
  Tensor x;
  bool arrived = false;
};

/// Messages of one tag. Sent ones are copied, so that a send is done at once.
struct Mailbox {
  std::deque<std::vector<std::byte>> sent;
  std::deque<std::shared_ptr<Awaited>> awaited;

  void match() {
    while (!sent.empty() && !awaited.empty()) {
      const auto& x = awaited.front()->x;
      TRIREME_EXPECT(sent.front().size() == x.byte_count(),
                     base::format("a message of {} bytes meets a receive of {}",
                                  sent.front().size(), x.byte_count()));
      copy_bytes(bytes_of(x), sent.front().data(), sent.front().size());
      awaited.front()->arrived = true;
      sent.pop_front();
      awaited.pop_front();
    }
  }
};

class PendingReceive final : public Work::Operation {
 public:
  PendingReceive(std::shared_ptr<Awaited> awaited, base::Rank self, int tag)
      : awaited_(std::move(awaited)), self_(self), tag_(tag) {}

  bool poll() override { return awaited_->arrived; }
  bool done() const override { return awaited_->arrived; }
  void wait() override {
    if (awaited_->arrived) return;
    throw PeerError(base::format("receive with tag {} from rank {} itself can never arrive "
                                 "(nothing was sent); send before waiting",
                                 tag_, self_.value()),
                    {"receive", "local", 0, {self_}, "", 0, ""});
  }

 private:
  std::shared_ptr<Awaited> awaited_;
  base::Rank self_;
  int tag_;
};

class LocalGroup final : public ProcessGroup {
 public:
  LocalGroup(std::string group_name, base::Rank self)
      : ProcessGroup(std::move(group_name), {self}, 0) {}

  const char* backend() const override { return "local"; }

  Work start_all_reduce(const Tensor& x, ReduceOp /*op*/) override {
    expect_whole(x);
    return {};
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) override {
    expect_parts(whole, part, 1, cuts, 0);
    copy_bytes(bytes_of(part), bytes_of(whole), whole.byte_count());
    return {};
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) override {
    expect_parts(whole, part, 1, cuts, 0);
    copy_bytes(bytes_of(whole), bytes_of(part), part.byte_count());
    return {};
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    expect_alike(from, to, 1);
    copy_bytes(bytes_of(to), bytes_of(from), from.byte_count());
    return {};
  }
  Work start_broadcast(const Tensor& x, int root) override {
    expect_whole(x);
    expect_position(root, 1);
    return {};
  }
  Work start_send(const Tensor& x, int peer, int tag) override {
    expect_whole(x);
    expect_position(peer, 1);
    auto& box = mailboxes_[tag];
    box.sent.emplace_back(bytes_of(x), bytes_of(x) + x.byte_count());
    box.match();
    return {};
  }
  Work start_receive(const Tensor& x, int peer, int tag) override {
    expect_whole(x);
    expect_position(peer, 1);
    const auto awaited = std::make_shared<Awaited>(Awaited{x});
    auto& box = mailboxes_[tag];
    box.awaited.push_back(awaited);
    box.match();
    if (awaited->arrived) return {};
    return Work(std::make_unique<PendingReceive>(awaited, ranks().front(), tag));
  }
  void barrier() override {}

 private:
  std::map<int, Mailbox> mailboxes_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_local_group(std::string name, base::Rank self) {
  return std::make_unique<LocalGroup>(std::move(name), self);
}

}  // namespace trireme::comm
