// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/group.hpp"

#include "trireme/base/format.hpp"

#include "comm/core/ordered_sum.hpp"
#include "comm/core/tensor_checks.hpp"

#include <algorithm>
#include <array>

namespace trireme::comm {
namespace {

using device::Tensor;

/// Sizes up to which every rank gets what all have and adds it up itself: one exchange instead of
/// two. Of one rank, and of all.
constexpr std::size_t small_bytes = std::size_t{8} << 10;
constexpr std::size_t small_total_bytes = std::size_t{8} << 20;
/// Size of a whole up to which its parts are relayed among many ranks.
constexpr std::size_t relayed_bytes = std::size_t{1} << 20;
/// Size up to which a broadcast is not cut into parts.
constexpr std::size_t whole_broadcast_bytes = std::size_t{64} << 10;
/// Parts from peers that wait to be added; there are two such buffers.
constexpr std::size_t staging_bytes = std::size_t{8} << 20;
/// Operations under way at once have different tags up to this many.
constexpr std::uint64_t tag_count = 16384;

}  // namespace

/// Parts of a reduction, one for each rank.
struct MpiGroup::Parts {
  std::byte* whole;
  std::vector<std::size_t> begins;  ///< offsets in bytes; one more than ranks
  device::DType dtype;

  std::size_t bytes(int part) const {
    const auto index = static_cast<std::size_t>(part);
    return begins[index + 1] - begins[index];
  }
  /// Bytes [begin, begin + length) of a part, as far as they exist.
  std::span<std::byte> slice(int part, std::size_t begin, std::size_t length) const {
    const auto available = bytes(part);
    const auto first = std::min(begin, available);
    return {whole + begins[static_cast<std::size_t>(part)] + first,
            std::min(length, available - first)};
  }
};

/// One piece of every part, and the buffers of the peers' pieces that wait to be added.
struct MpiGroup::Round {
  std::size_t begin;
  std::size_t piece;
  std::byte* staging;
};

MpiGroup::MpiGroup(std::string group_name, std::vector<base::Rank> members, Wiring wiring)
    : ProcessGroup(std::move(group_name), std::move(members), mpi::rank(wiring.collectives.get())),
      wiring_(std::move(wiring)),
      tag_limit_(mpi::tag_limit(wiring_.messages.get())) {}

MpiGroup::~MpiGroup() {
  if (!broken_) return;
  // Not freed: new communicators would reuse the numbers, and old messages could then reach them.
  wiring_.collectives.release();
  wiring_.messages.release();
}

Work MpiGroup::collective(const char* operation, std::size_t bytes, std::vector<Stage> stages,
                          BufferPool::Lease staging) {
  TRIREME_EXPECT(!broken_, "a process group is not used after a failure");
  OperationLabel label{operation, name(), ranks(), ++collectives_started_, wiring_.timeout_seconds};
  label.bytes = bytes;
  const auto tag = static_cast<int>(label.number % tag_count);
  return work_of(std::make_unique<MpiOperation>(
      *wiring_.progress, label, MpiOperation::Route{wiring_.collectives.get(), tag, &broken_},
      std::move(stages), std::move(staging)));
}

Work MpiGroup::message(const char* operation, const SendReceive& step, int peer, int tag) {
  expect_position(peer, size());
  TRIREME_EXPECT(!broken_, "a process group is not used after a failure");
  TRIREME_EXPECT(tag >= 0 && tag <= tag_limit_,
                 base::format("message tag {} outside 0 to {}", tag, tag_limit_));
  const OperationLabel label{operation,
                             name(),
                             ranks(),
                             ++messages_started_,
                             wiring_.timeout_seconds,
                             peer,
                             tag,
                             step.send.size() + step.receive.size()};
  return work_of(std::make_unique<MpiOperation>(
      *wiring_.progress, label, MpiOperation::Route{wiring_.messages.get(), tag, &broken_},
      std::vector<Stage>{{{step}, {}, false}}, BufferPool::Lease{}));
}

Stage MpiGroup::reduction_round(const Parts& parts, ReduceOp op, std::byte* out,
                                const Round& round) const {
  const auto mine = parts.slice(rank(), round.begin, round.piece);
  Stage stage;
  std::vector<const void*> inputs(count());
  inputs[static_cast<std::size_t>(rank())] = mine.data();
  for (int distance = 1; distance < size(); ++distance) {
    SendReceive step;
    step.send = parts.slice(after(distance), round.begin, round.piece);
    if (!step.send.empty()) step.to = after(distance);
    step.receive = {round.staging + static_cast<std::size_t>(distance - 1) * round.piece,
                    mine.size()};
    if (!mine.empty()) step.from = before(distance);
    inputs[static_cast<std::size_t>(before(distance))] = step.receive.data();
    stage.steps.push_back(step);
  }
  const auto elements = static_cast<std::int64_t>(mine.size() / device::size_of(parts.dtype));
  stage.finish = [op, dtype = parts.dtype, inputs = std::move(inputs), to = out + round.begin,
                  elements] {
    if (elements > 0) reduce_in_order(op, dtype, inputs, to, elements);
  };
  stage.early = true;
  return stage;
}

BufferPool::Lease MpiGroup::add_reduction(std::vector<Stage>& stages, const Parts& parts,
                                          ReduceOp op, std::byte* out) {
  std::size_t longest = 0;
  for (int part = 0; part < size(); ++part) longest = std::max(longest, parts.bytes(part));
  const auto peers = count() - 1;
  const auto aligned = [](std::size_t bytes) {
    return (bytes + BufferPool::alignment - 1) / BufferPool::alignment * BufferPool::alignment;
  };
  const auto piece = std::min(aligned(longest), aligned(staging_bytes / peers));
  const auto rounds = (longest + piece - 1) / piece;
  auto staging = staging_.take(piece * peers * std::min<std::size_t>(rounds, 2));
  for (std::size_t round = 0; round < rounds; ++round) {
    auto* const half = staging.data() + round % 2 * piece * peers;
    stages.push_back(reduction_round(parts, op, out, {round * piece, piece, half}));
  }
  return staging;
}

std::vector<Stage> MpiGroup::gather(std::byte* whole,
                                    const std::vector<std::size_t>& begins) const {
  if (!position().is_direct() && begins.back() <= relayed_bytes) {
    return gather_rounds(position(), whole, begins);
  }
  return {exchange_parts(whole, begins)};
}

Stage MpiGroup::exchange_parts(std::byte* whole, const std::vector<std::size_t>& begins) const {
  const auto place = [&](int position) {
    const auto index = static_cast<std::size_t>(position);
    return std::span<std::byte>{whole + begins[index], begins[index + 1] - begins[index]};
  };
  Stage stage;
  for (int distance = 1; distance < size(); ++distance) {
    SendReceive step;
    step.send = place(rank());
    if (!step.send.empty()) step.to = after(distance);
    step.receive = place(before(distance));
    if (!step.receive.empty()) step.from = before(distance);
    stage.steps.push_back(step);
  }
  return stage;
}

Work MpiGroup::small_all_reduce(const Tensor& x, ReduceOp op) {
  const auto bytes = x.byte_count();
  auto staging = staging_.take(bytes * count());
  std::vector<std::size_t> begins;
  std::vector<const void*> inputs;
  for (std::size_t rank = 0; rank <= count(); ++rank) {
    begins.push_back(rank * bytes);
    if (rank < count()) inputs.push_back(staging.data() + rank * bytes);
  }
  copy_bytes(staging.data() + begins[static_cast<std::size_t>(rank())], bytes_of(x), bytes);
  auto stages = position().is_direct() ? std::vector{exchange_parts(staging.data(), begins)}
                                       : gather_rounds(position(), staging.data(), begins);
  stages.back().finish = [x, op, inputs = std::move(inputs)] {
    reduce_in_order(op, x.dtype(), inputs, x.raw(), x.element_count());
  };
  return collective("all_reduce", bytes, std::move(stages), std::move(staging));
}

/// Integers: their sums, which wrap, and maxima are the same in any order.
Work MpiGroup::combine(const Tensor& x, ReduceOp op) {
  const auto bytes = x.byte_count();
  auto staging = staging_.take(bytes * std::max<std::size_t>(1, children_of(position()).size()));
  auto stages = combine_rounds(
      position(), {bytes_of(x), bytes}, staging.data(), [x, op](const std::byte* theirs) {
        reduce_in_order(op, x.dtype(), std::array<const void*, 2>{x.raw(), theirs}, x.raw(),
                        x.element_count());
      });
  return collective("all_reduce", bytes, std::move(stages), std::move(staging));
}

Work MpiGroup::start_all_reduce(const Tensor& x, ReduceOp op) {
  expect_whole(x);
  const auto bytes = x.byte_count();
  if (bytes == 0) return collective("all_reduce", bytes, {}, {});
  if (bytes <= small_bytes && !position().is_direct() && x.dtype() == device::DType::i32) {
    return combine(x, op);
  }
  if (bytes <= small_bytes && bytes * count() <= small_total_bytes) return small_all_reduce(x, op);
  const Parts parts{bytes_of(x), begins_of_parts(x, size(), {}), x.dtype()};
  std::vector<Stage> stages;
  auto* const mine = bytes_of(x) + parts.begins[static_cast<std::size_t>(rank())];
  auto staging = add_reduction(stages, parts, op, mine);
  for (auto& stage : gather(bytes_of(x), parts.begins)) stages.push_back(std::move(stage));
  return collective("all_reduce", bytes, std::move(stages), std::move(staging));
}

Work MpiGroup::start_reduce_scatter(const Tensor& whole, const Tensor& part, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  if (whole.byte_count() == 0) return collective("reduce_scatter", whole.byte_count(), {}, {});
  std::vector<Stage> stages;
  auto staging =
      add_reduction(stages, {bytes_of(whole), begins_of_parts(whole, size(), cuts), whole.dtype()},
                    ReduceOp::sum, bytes_of(part));
  return collective("reduce_scatter", whole.byte_count(), std::move(stages), std::move(staging));
}

Work MpiGroup::start_all_gather(const Tensor& part, const Tensor& whole, const Cuts& cuts) {
  expect_parts(whole, part, size(), cuts, rank());
  const auto begins = begins_of_parts(whole, size(), cuts);
  copy_bytes(bytes_of(whole) + begins[static_cast<std::size_t>(rank())], bytes_of(part),
             part.byte_count());
  return collective("all_gather", whole.byte_count(), gather(bytes_of(whole), begins), {});
}

Work MpiGroup::start_all_to_all(const Tensor& from, const Tensor& to) {
  expect_alike(from, to, size());
  const auto bytes = from.byte_count() / count();
  const auto place = [&](const Tensor& x, int position) {
    return bytes_of(x) + bytes * static_cast<std::size_t>(position);
  };
  copy_bytes(place(to, rank()), place(from, rank()), bytes);
  Stage stage;
  for (int distance = 1; distance < size() && bytes > 0; ++distance) {
    const int to_rank = after(distance);
    const int from_rank = before(distance);
    stage.steps.push_back(
        {to_rank, {place(from, to_rank), bytes}, from_rank, {place(to, from_rank), bytes}});
  }
  return collective("all_to_all", from.byte_count(), {std::move(stage)}, {});
}

Work MpiGroup::start_broadcast(const Tensor& x, int root) {
  expect_whole(x);
  expect_position(root, size());
  if (!position().is_direct() && x.byte_count() > 0 && x.byte_count() <= whole_broadcast_bytes) {
    return collective("broadcast", x.byte_count(),
                      broadcast_rounds(position(), root, {bytes_of(x), x.byte_count()}), {});
  }
  const bool direct = x.byte_count() <= whole_broadcast_bytes || size() == 2;
  const auto begins = begins_of_parts(x, size(), {});
  Stage first;
  for (int distance = 1; distance < size() && x.byte_count() > 0; ++distance) {
    const int other = rank() == root ? after(distance) : rank();
    const auto index = static_cast<std::size_t>(other);
    const auto bytes = direct ? x.byte_count() : begins[index + 1] - begins[index];
    auto* const place = bytes_of(x) + (direct ? 0 : begins[index]);
    if (bytes == 0) continue;
    if (rank() == root) {
      first.steps.push_back({other, {place, bytes}, -1, {}});
    } else if (distance == 1) {
      first.steps.push_back({-1, {}, root, {place, bytes}});
    }
  }
  std::vector<Stage> stages{std::move(first)};
  if (!direct) {
    // The root has every part already and receives none.
    auto second = exchange_parts(bytes_of(x), begins);
    for (auto& step : second.steps) {
      if (step.to == root) step.to = -1;
      if (rank() == root) step.from = -1;
    }
    stages.push_back(std::move(second));
  }
  return collective("broadcast", x.byte_count(), std::move(stages), {});
}

Work MpiGroup::start_send(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  return message("send", {peer, {bytes_of(x), x.byte_count()}, -1, {}}, peer, tag);
}

Work MpiGroup::start_receive(const Tensor& x, int peer, int tag) {
  expect_whole(x);
  return message("receive", {-1, {}, peer, {bytes_of(x), x.byte_count()}}, peer, tag);
}

void MpiGroup::barrier() {
  collective("barrier", 0, barrier_rounds(position()), {}).wait();
}

}  // namespace trireme::comm
