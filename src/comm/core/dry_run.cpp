// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ordered_sum.hpp"
#include "comm/core/tensor_checks.hpp"

namespace trireme::comm {
namespace {

using device::Tensor;

class DryRunGroup final : public ProcessGroup {
 public:
  DryRunGroup(std::string group_name, std::vector<base::Rank> members, int self, DryRunData data,
              std::size_t* moved)
      : ProcessGroup(std::move(group_name), std::move(members), self), data_(data), moved_(moved) {
    expect_position(self, size());
  }

  const char* backend() const override { return "dry-run"; }

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    expect_whole(x);
    count(x);
    if (mirrored()) reduce_copies(op, x, bytes_of(x), x);
    return {};
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    count(whole);
    if (mirrored()) reduce_copies(ReduceOp::sum, part, place(whole, rank(), cuts), part);
    return {};
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    count(whole);
    if (!mirrored()) return {};
    if (!cuts.empty()) {
      // Parts of other lengths are no copies of this one: what lies there already counts as theirs.
      copy_bytes(place(whole, rank(), cuts), bytes_of(part), part.byte_count());
      return {};
    }
    // The part may lie inside the whole: its own place is written by no copy but its own.
    for (int peer = 0; peer < size(); ++peer) {
      copy_bytes(place(whole, peer, {}), bytes_of(part), part.byte_count());
    }
    return {};
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    expect_alike(from, to, size());
    count(from);
    if (!mirrored()) return {};
    const auto bytes = from.byte_count() / static_cast<std::size_t>(size());
    const auto* mine = bytes_of(from) + bytes * static_cast<std::size_t>(rank());
    for (std::size_t peer = 0; peer < static_cast<std::size_t>(size()); ++peer) {
      copy_bytes(bytes_of(to) + bytes * peer, mine, bytes);
    }
    return {};
  }
  Work start_broadcast(const Tensor& x, int root) override {
    expect_whole(x);
    expect_position(root, size());
    count(x);
    return {};
  }
  Work start_send(const Tensor& x, int peer, int /*tag*/) override {
    expect_whole(x);
    expect_position(peer, size());
    return {};
  }
  Work start_receive(const Tensor& x, int peer, int /*tag*/) override {
    expect_whole(x);
    expect_position(peer, size());
    count(x);
    // Data of a pretended peer is not known: zeros are at least the same every time.
    if (mirrored() && x.byte_count() > 0) std::memset(x.raw(), 0, x.byte_count());
    return {};
  }
  void barrier() override {}

 private:
  bool mirrored() const { return data_ == DryRunData::mirrored; }
  void count(const Tensor& whole) {
    if (moved_ != nullptr && size() > 1) *moved_ += whole.byte_count();
  }

  std::byte* place(const Tensor& whole, int position, const Cuts& cuts) const {
    return bytes_of(whole) +
           begins_of_parts(whole, size(), cuts)[static_cast<std::size_t>(position)];
  }

  /// out = the reduction of size() copies of `from`.
  void reduce_copies(ReduceOp op, const Tensor& like, const std::byte* from,
                     const Tensor& out) const {
    const std::vector<const void*> inputs(static_cast<std::size_t>(size()), from);
    reduce_in_order(op, like.dtype(), inputs, out.raw(), like.element_count());
  }

  DryRunData data_;
  std::size_t* moved_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_dry_run_group(std::string name, std::vector<base::Rank> ranks,
                                                 int rank, DryRunData data, std::size_t* moved) {
  return std::make_unique<DryRunGroup>(std::move(name), std::move(ranks), rank, data, moved);
}

}  // namespace trireme::comm
