// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/staged.hpp"

#include "comm/core/tensor_checks.hpp"
#include "comm/staged/host_blocks.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace trireme::comm {
namespace {

using device::Tensor;

/// A run of a device's tensor and its copy in staging memory.
struct Staged {
  Tensor there;
  Tensor here;
};

/// A part of a collective that the host's group moves at once.
struct Piece {
  Work work;
  std::vector<Staged> results;
};

class StagedOperation final : public Work::Operation {
 public:
  StagedOperation(device::Device& device, HostBlocks::Lease lease)
      : device_(device), lease_(std::move(lease)) {}

  HostBlocks::Lease& lease() { return lease_; }
  void add(Piece piece) { pieces_.push_back(std::move(piece)); }

  bool poll() override {
    while (done_ < pieces_.size() && pieces_[done_].work.poll()) give_results();
    return done_ == pieces_.size();
  }
  void wait() override {
    while (done_ < pieces_.size()) {
      pieces_[done_].work.wait();
      give_results();
    }
  }
  bool done() const override { return done_ == pieces_.size(); }

 private:
  void give_results() {
    for (const auto& result : pieces_[done_].results) {
      device_.copy_in(result.here.raw(), result.there);
    }
    ++done_;
  }

  device::Device& device_;
  /// Lease of staging memory; outlives the works that use it.
  HostBlocks::Lease lease_;
  std::vector<Piece> pieces_;
  std::size_t done_ = 0;
};

/// Inputs and outputs of one piece on the device, and the host's operation on it.
struct Plan {
  std::vector<Staged> inputs;
  std::vector<Staged> results;
  std::function<Work()> start;
};

class StagedGroup final : public ProcessGroup {
 public:
  StagedGroup(std::unique_ptr<ProcessGroup> host, device::Device& device, std::size_t piece_bytes)
      : ProcessGroup(host->name(), host->ranks(), host->rank()),
        host_(std::move(host)),
        device_(device),
        piece_bytes_(piece_bytes),
        blocks_(device) {}

  const char* backend() const override { return "staged"; }
  ProcessGroup& host_group() override { return *host_; }

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    expect_whole(x);
    const auto all = x.flat();
    return in_pieces({x.dtype(), x.element_count(), 1}, [&](Room& room, Range range) {
      const Staged staged{all.slice(0, range.begin, range.count), room.take(range.count)};
      return Plan{
          {staged}, {staged}, [=, this] { return host_->start_all_reduce(staged.here, op); }};
    });
  }

  Work start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    return in_ranges_of_parts(
        whole, part, cuts,
        [&](std::vector<Staged> parts, Staged mine, const Tensor& all, const Cuts& cuts_here) {
          return Plan{std::move(parts), {mine}, [=, this] {
                        return host_->start_reduce_scatter(all, mine.here, cuts_here);
                      }};
        });
  }

  Work start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) override {
    expect_parts(whole, part, size(), cuts, rank());
    return in_ranges_of_parts(
        whole, part, cuts,
        [&](std::vector<Staged> parts, Staged mine, const Tensor& all, const Cuts& cuts_here) {
          return Plan{{mine}, std::move(parts), [=, this] {
                        return host_->start_all_gather(mine.here, all, cuts_here);
                      }};
        });
  }

  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    expect_alike(from, to, size());
    return in_pieces({from.dtype(), from.element_count() / size(), 2 * size()},
                     [&](Room& room, Range range) {
                       const auto out = room.take(size() * range.count);
                       const auto in = room.take(size() * range.count);
                       return Plan{parts_of(from, out, begins_in_elements(from, {}), range),
                                   parts_of(to, in, begins_in_elements(to, {}), range),
                                   [=, this] { return host_->start_all_to_all(out, in); }};
                     });
  }

  Work start_broadcast(const Tensor& x, int root) override {
    expect_whole(x);
    expect_position(root, size());
    const auto all = x.flat();
    return in_pieces({x.dtype(), x.element_count(), 1}, [&](Room& room, Range range) {
      const Staged staged{all.slice(0, range.begin, range.count), room.take(range.count)};
      const auto start = [=, this] { return host_->start_broadcast(staged.here, root); };
      return rank() == root ? Plan{{staged}, {}, start} : Plan{{}, {staged}, start};
    });
  }

  Work start_send(const Tensor& x, int peer, int tag) override {
    expect_whole(x);
    const auto all = x.flat();
    return in_pieces({x.dtype(), x.element_count(), 1}, [&](Room& room, Range range) {
      const Staged staged{all.slice(0, range.begin, range.count), room.take(range.count)};
      return Plan{{staged}, {}, [=, this] { return host_->start_send(staged.here, peer, tag); }};
    });
  }

  Work start_receive(const Tensor& x, int peer, int tag) override {
    expect_whole(x);
    const auto all = x.flat();
    return in_pieces({x.dtype(), x.element_count(), 1}, [&](Room& room, Range range) {
      const Staged staged{all.slice(0, range.begin, range.count), room.take(range.count)};
      return Plan{{}, {staged}, [=, this] { return host_->start_receive(staged.here, peer, tag); }};
    });
  }

  void barrier() override {
    device_.synchronize();
    host_->barrier();
  }

 private:
  /// Amount of data that is cut into pieces: `count` elements, of which staging holds `copies`.
  struct Amount {
    device::DType dtype = device::DType::f32;
    std::int64_t count = 0;
    std::int64_t copies = 0;
    /// Elements that staging holds of all pieces; -1: `count` in every copy.
    std::int64_t staged = -1;
  };
  struct Range {
    std::int64_t begin;
    std::int64_t count;
  };
  /// Cursor over staging memory that places tensors in it.
  struct Room {
    HostBlocks::Lease& lease;
    device::DType dtype;
    Tensor take(std::int64_t count) { return lease.allocate(dtype, count); }
  };

  /// A collective on parts that `cuts` give: a piece is a range of elements of each part, as far as
  /// the part reaches.
  template <typename Planner>
  Work in_ranges_of_parts(const Tensor& whole, const Tensor& part, const Cuts& cuts,
                          const Planner& plan_of) {
    const auto begins = begins_in_elements(whole, cuts);
    std::int64_t longest = 0;
    for (std::size_t each = 1; each < begins.size(); ++each) {
      longest = std::max(longest, begins[each] - begins[each - 1]);
    }
    const auto own = part.flat();
    const Amount amount{part.dtype(), longest, size() + 1,
                        whole.element_count() + part.element_count()};
    return in_pieces(amount, [&](Room& room, Range range) {
      auto cuts_here = clipped(begins, range);
      const auto self = static_cast<std::size_t>(rank());
      const auto count = cuts_here[self + 1] - cuts_here[self];
      const auto all = room.take(cuts_here.back());
      // A part that ends before this range has nothing in it, at its end.
      const auto begin = std::min(range.begin, own.element_count());
      const Staged mine{own.slice(0, begin, count), room.take(count)};
      auto parts = parts_of(whole, all, begins, range);
      // Equal parts need no cuts: the host's group need not look.
      if (cuts.empty()) cuts_here.clear();
      return plan_of(std::move(parts), mine, all, cuts_here);
    });
  }

  /// Begins of the parts, and their end.
  Cuts begins_in_elements(const Tensor& whole, const Cuts& cuts) const {
    if (!cuts.empty()) return cuts;
    Cuts begins;
    for (int part = 0; part <= size(); ++part) {
      begins.push_back(part * (whole.element_count() / size()));
    }
    return begins;
  }

  /// Cuts of what `range` holds of each part, one after another.
  static Cuts clipped(const Cuts& begins, Range range) {
    Cuts cuts{0};
    for (std::size_t part = 1; part < begins.size(); ++part) {
      const auto length = begins[part] - begins[part - 1];
      cuts.push_back(cuts.back() + std::clamp<std::int64_t>(length - range.begin, 0, range.count));
    }
    return cuts;
  }

  /// The piece of each part that `range` holds, and its place in `staging`.
  std::vector<Staged> parts_of(const Tensor& whole, const Tensor& staging, const Cuts& begins,
                               Range range) const {
    const auto cuts = clipped(begins, range);
    const auto all = whole.flat();
    std::vector<Staged> parts;
    for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
      const auto count = cuts[part + 1] - cuts[part];
      if (count == 0) continue;
      parts.push_back(
          {all.slice(0, begins[part] + range.begin, count), staging.slice(0, cuts[part], count)});
    }
    return parts;
  }

  std::vector<Range> ranges_of(const Amount& amount) const {
    const auto element = device::size_of(amount.dtype) * static_cast<std::size_t>(amount.copies);
    const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(piece_bytes_ / element));
    // An empty tensor is one piece too: collectives must have the same numbers on every rank.
    std::vector<Range> ranges;
    std::int64_t begin = 0;
    do {
      ranges.push_back({begin, std::min(most, amount.count - begin)});
      begin += most;
    } while (begin < amount.count);
    return ranges;
  }

  static std::size_t staging_bytes(const Amount& amount, std::size_t pieces) {
    const auto elements = amount.staged < 0 ? amount.count * amount.copies : amount.staged;
    const auto data = static_cast<std::size_t>(elements) * device::size_of(amount.dtype);
    // Alignment: every tensor begins at a multiple of the arena's.
    return data + pieces * static_cast<std::size_t>(amount.copies) * device::Arena::alignment;
  }

  /// All copies to the host are issued, then each piece moves as soon as its copies are done: all
  /// messages have begun when this returns, so that no rank's later waits can hold them up.
  template <typename Planner>
  Work in_pieces(const Amount& amount, const Planner& plan_of) {
    const auto ranges = ranges_of(amount);
    auto operation = std::make_unique<StagedOperation>(
        device_, blocks_.take(staging_bytes(amount, ranges.size())));
    Room room{operation->lease(), amount.dtype};
    std::vector<std::pair<Plan, device::Event>> pieces;
    for (const auto& range : ranges) {
      auto plan = plan_of(room, range);
      for (const auto& input : plan.inputs) device_.copy_out(input.there, input.here.raw());
      auto event = plan.inputs.empty() ? device::Event{} : device_.record();
      pieces.emplace_back(std::move(plan), std::move(event));
    }
    for (auto& [plan, event] : pieces) {
      event.wait();
      operation->add({plan.start(), std::move(plan.results)});
    }
    if (operation->poll()) return {};
    return Work(std::move(operation));
  }

  std::unique_ptr<ProcessGroup> host_;
  device::Device& device_;
  std::size_t piece_bytes_;
  HostBlocks blocks_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_staged_group(std::unique_ptr<ProcessGroup> host,
                                                device::Device& device, std::size_t piece_bytes) {
  return std::make_unique<StagedGroup>(std::move(host), device, piece_bytes);
}

}  // namespace trireme::comm
