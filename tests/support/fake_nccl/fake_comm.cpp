// SPDX-License-Identifier: Apache-2.0
#include "support/fake_nccl/fake_comm.hpp"

#include "support/simulated_gpu/device.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace trireme::testing {
namespace {

using comm::nccl::DataType;
using comm::nccl::Reduction;
using comm::nccl::Result;
using device::DType;
using device::Tensor;
using Kind = FakeComm::Part::Kind;

/// Where the stand-in of the device reaches what a call names.
Tensor reach(const void* address, std::int64_t count, DataType type, const char* operand) {
  const Tensor there(const_cast<void*>(address), dtype_of(type), {count});
  return reached(there, "NCCL", operand);
}

template <typename T>
T combined(Reduction op, T a, T b) {
  return op == Reduction::sum ? a + b : std::max(a, b);
}

/// One addition of NCCL's: bf16 is rounded at once.
void add(Reduction op, DataType type, std::byte* sum, const std::byte* other, std::size_t index) {
  if (type == DataType::bf16) {
    auto* const a = reinterpret_cast<device::Bf16*>(sum) + index;
    const auto b = reinterpret_cast<const device::Bf16*>(other)[index];
    *a = device::to_bf16(combined(op, device::to_float(*a), device::to_float(b)));
  } else if (type == DataType::f32) {
    auto* const a = reinterpret_cast<float*>(sum) + index;
    *a = combined(op, *a, reinterpret_cast<const float*>(other)[index]);
  } else {
    auto* const a = reinterpret_cast<std::int32_t*>(sum) + index;
    *a = combined(op, *a, reinterpret_cast<const std::int32_t*>(other)[index]);
  }
}

}  // namespace

/// A call under way on a stream.
struct FakeComm::Run {
  std::vector<Part> parts;
  /// By part: with all members, or with one.
  std::vector<std::vector<FakeTransfer>> transfers;
  std::vector<FakeUse> uses;
  /// Those of the others, as transfers.
  std::vector<std::vector<FakeTransfer>> others;
  std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
  bool started = false;
};

void FakeComm::settle(std::vector<int> members, int rank) {
  members_ = std::move(members);
  rank_ = rank;
}

void FakeComm::begin(const char* call, std::function<bool()> until) {
  if (until_ || looks_left_ > 0) {
    throw std::logic_error(std::string(call) + " while " + call_ + " is still in progress");
  }
  call_ = call;
  looks_left_ = nccl_.faults.looks;
  until_ = std::move(until);
}

Result FakeComm::look() {
  if (under_way_ > 0 && nccl_.faults.fails_later && ++looks_under_way_ >= 3) {
    return *nccl_.faults.fails_later;
  }
  if (looks_left_ > 0 && --looks_left_ > 0) return Result::in_progress;
  if (until_ && !until_()) return Result::in_progress;
  until_ = nullptr;
  if (then_) std::exchange(then_, nullptr)();
  return Result::success;
}

int FakeComm::tag(int kind) const {
  // FNV-1a, in the range that MPI promises and that meetings leave.
  std::uint64_t hash = 14695981039346656037U;
  for (const auto value : {id_, static_cast<std::uint64_t>(kind)}) {
    hash = (hash ^ value) * 1099511628211U;
    hash ^= hash >> 29U;
  }
  return static_cast<int>((hash % 0x1FFFFFFFU) | 0x10000000U);
}

FakeTransfer FakeComm::send_to(int position, const void* values, std::size_t bytes, int tag) {
  FakeTransfer transfer;
  transfer.bytes.resize((bytes + 3) / 4 * 4);
  std::memcpy(transfer.bytes.data(), values, bytes);
  const auto words = static_cast<std::int64_t>(transfer.bytes.size() / 4);
  transfer.work = nccl_.data_->start_send({transfer.bytes.data(), DType::i32, {words}},
                                          members_[static_cast<std::size_t>(position)], tag);
  return transfer;
}

FakeTransfer FakeComm::receive_from(int position, std::size_t bytes, int tag) {
  FakeTransfer transfer;
  transfer.bytes.resize((bytes + 3) / 4 * 4);
  const auto words = static_cast<std::int64_t>(transfer.bytes.size() / 4);
  transfer.work = nccl_.data_->start_receive({transfer.bytes.data(), DType::i32, {words}},
                                             members_[static_cast<std::size_t>(position)], tag);
  return transfer;
}

std::vector<FakeTransfer> FakeComm::exchange(const void* values, std::size_t bytes, int kind) {
  std::vector<FakeTransfer> transfers;
  for (int position = 0; position < size(); ++position) {
    if (position == rank_) {
      FakeTransfer own;
      own.bytes.resize((bytes + 3) / 4 * 4);
      std::memcpy(own.bytes.data(), values, bytes);
      transfers.push_back(std::move(own));
    } else {
      transfers.push_back(receive_from(position, bytes, tag(kind)));
    }
  }
  for (int position = 0; position < size(); ++position) {
    if (position != rank_) transfers.push_back(send_to(position, values, bytes, tag(kind)));
  }
  return transfers;
}

void FakeComm::issue(const char* call, std::vector<Part> parts, void* stream) {
  auto run = std::make_shared<Run>();
  for (const auto& part : parts) run->uses.push_back(note_use(part));
  run->parts = std::move(parts);
  begin(call, nullptr);
  ++under_way_;
  auto* const side = static_cast<simulated_gpu::Stream*>(stream);
  then_ = [self = shared_from_this(), run, side] {
    side->issue_until([self, run] { return self->advance(*run); });
  };
}

bool FakeComm::advance(Run& run) {
  if (aborted_) return true;
  if (nccl_.faults.never_ends) return false;
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - run.asked;
  if (waited.count() < nccl_.faults.late_seconds) return false;
  if (!run.started) start(run);
  for (const auto* all : {&run.transfers, &run.others}) {
    for (const auto& transfers : *all) {
      for (const auto& transfer : transfers) {
        if (!transfer.work.done()) return false;
      }
    }
  }
  complete(run);
  --under_way_;
  return true;
}

void FakeComm::start(Run& run) {
  run.started = true;
  for (std::size_t index = 0; index < run.parts.size(); ++index) {
    const auto& part = run.parts[index];
    run.others.push_back(tell_use(part, run.uses[index]));
    std::vector<FakeTransfer> transfers;
    const auto bytes = static_cast<std::size_t>(part.count) * device::size_of(dtype_of(part.type));
    if (part.kind == Kind::receive) {
      if (part.peer != rank_) transfers.push_back(receive_from(part.peer, bytes, tag(1)));
    } else if (part.kind == Kind::send) {
      const auto values = reach(part.from, part.count, part.type, "sendbuff");
      if (part.peer != rank_) {
        transfers.push_back(send_to(part.peer, values.raw(), bytes, tag(1)));
      }
    } else {
      transfers = exchange(reach(part.from, part.count, part.type, "sendbuff").raw(), bytes);
    }
    run.transfers.push_back(std::move(transfers));
  }
}

std::vector<std::byte> FakeComm::reduced(const Part& part,
                                         const std::vector<FakeTransfer>& inputs) const {
  const auto ranks = static_cast<std::size_t>(size());
  const auto count = static_cast<std::size_t>(part.count);
  auto sum = inputs[0].bytes;
  for (std::size_t index = 0; index < count; ++index) {
    // A ring's sum of a part begins behind its owner; an all-reduce comes down from the last rank.
    const auto owner = count >= ranks ? index / (count / ranks) : 0;
    const bool ring = part.kind == Kind::reduce_scatter;
    const auto element = device::size_of(dtype_of(part.type));
    for (std::size_t turn = 0; turn < ranks; ++turn) {
      auto from = ring ? (owner + 1 + turn) % ranks : ranks - 1 - turn;
      // One to a root comes round the other way.
      if (part.kind == Kind::reduce) {
        from = (static_cast<std::size_t>(part.peer) + 2 * ranks - 1 - turn) % ranks;
      }
      const auto* const input = inputs[from].bytes.data();
      if (turn == 0) {
        std::memcpy(sum.data() + index * element, input + index * element, element);
      } else {
        add(part.op, part.type, sum.data(), input, index);
      }
    }
  }
  return sum;
}

void FakeComm::complete(Run& run) {
  const auto mine = static_cast<std::size_t>(rank_);
  std::vector<const Part*> own_sends;
  for (const auto& part : run.parts) {
    if (part.kind == Kind::send && part.peer == rank_) own_sends.push_back(&part);
  }
  for (std::size_t index = 0; index < run.parts.size(); ++index) {
    const auto& part = run.parts[index];
    const auto& inputs = run.transfers[index];
    expect_like(part, run.uses[index], run.others[index]);
    const auto bytes = static_cast<std::size_t>(part.count) * device::size_of(dtype_of(part.type));
    const auto put = [&](std::size_t place, const std::byte* from, std::size_t length) {
      const auto count =
          static_cast<std::int64_t>((place + length) / device::size_of(dtype_of(part.type)));
      const auto to = reach(part.to, count, part.type, "recvbuff");
      std::memcpy(static_cast<std::byte*>(to.raw()) + place, from, length);
    };
    switch (part.kind) {
      case Kind::all_reduce:
        put(0, reduced(part, inputs).data(), bytes);
        break;
      case Kind::reduce_scatter: {
        const auto length = bytes / members_.size();
        put(0, reduced(part, inputs).data() + mine * length, length);
        break;
      }
      case Kind::reduce:
        if (part.peer == rank_) put(0, reduced(part, inputs).data(), bytes);
        break;
      case Kind::all_gather:
        for (std::size_t from = 0; from < members_.size(); ++from) {
          put(from * bytes, inputs[from].bytes.data(), bytes);
        }
        break;
      case Kind::broadcast:
        put(0, inputs[static_cast<std::size_t>(part.peer)].bytes.data(), bytes);
        break;
      case Kind::receive:
        if (part.peer != rank_) {
          put(0, inputs[0].bytes.data(), bytes);
        } else {
          const auto from = reach(own_sends.at(0)->from, part.count, part.type, "sendbuff");
          put(0, static_cast<const std::byte*>(from.raw()), bytes);
        }
        break;
      case Kind::send:
        break;
    }
  }
}

}  // namespace trireme::testing
