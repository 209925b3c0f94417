// SPDX-License-Identifier: Apache-2.0
// Memory that a communicator of FakeNccl is told of, and what its operations owe to that.
#include "support/fake_nccl/fake_comm.hpp"
#include "support/simulated_gpu/device.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace trireme::testing {
namespace {

using Part = FakeComm::Part;
using Kind = Part::Kind;

bool is_message(const Part& part) {
  return part.kind == Kind::send || part.kind == Kind::receive;
}

/// Between the two ends of messages and between members of collectives.
constexpr int use_of_collective = 2;
constexpr int use_of_message = 3;

}  // namespace

device::DType dtype_of(comm::nccl::DataType type) {
  using comm::nccl::DataType;
  using device::DType;
  if (type == DataType::f32) return DType::f32;
  return type == DataType::bf16 ? DType::bf16 : DType::i32;
}

void* FakeComm::add_registration(const void* data, std::size_t bytes) {
  if (!lies_on_device(data)) throw std::logic_error("NCCL is told of memory that no GPU has");
  const Range range{static_cast<const std::byte*>(data), bytes};
  for (const auto& [handle, known] : registrations_) {
    if (range.begin < known.begin + known.bytes && known.begin < range.begin + bytes) {
      throw std::logic_error("NCCL is told twice of the same memory");
    }
  }
  std::erase_if(former_, [&](const Range& old) {
    return old.begin < range.begin + bytes && range.begin < old.begin + old.bytes;
  });
  auto* const handle = reinterpret_cast<void*>(++handles_made_);
  registrations_[handle] = range;
  return handle;
}

void FakeComm::remove_registration(void* handle) {
  const auto found = registrations_.find(handle);
  if (found == registrations_.end()) throw std::logic_error("NCCL knows of no such memory");
  if (under_way_ > 0) throw std::logic_error("memory is taken from NCCL that works in it");
  former_.push_back(found->second);
  registrations_.erase(found);
}

void FakeComm::expect_no_registrations() const {
  if (!registrations_.empty()) {
    throw std::logic_error("a communicator ends that still knows of memory");
  }
}

FakeComm::Place FakeComm::place_of(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  for (const auto& old : former_) {
    if (begin != nullptr && begin < old.begin + old.bytes && old.begin < begin + bytes) {
      throw std::logic_error("NCCL is given memory that was taken from it");
    }
  }
  for (const auto& [handle, known] : registrations_) {
    if (begin < known.begin || begin + bytes > known.begin + known.bytes) continue;
    return {true, nccl_.offset_in_allocation(begin)};
  }
  return {};
}

FakeUse FakeComm::note_use(const Part& part) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto bytes = static_cast<std::size_t>(part.count) * device::size_of(dtype_of(part.type));
  const auto from = place_of(part.from, bytes);
  const auto to = place_of(part.to, part.kind == Kind::all_gather       ? bytes * ranks
                                    : part.kind == Kind::reduce_scatter ? bytes / ranks
                                                                        : bytes);
  FakeUse use;
  use.known = (part.from == nullptr || from.known) && (part.to == nullptr || to.known) ? 1 : 0;
  // GPUs read all members' parts of what is reduced, and write those of what is gathered.
  if (use.known == 1 && !is_message(part)) {
    const bool reduces = part.kind == Kind::reduce_scatter || part.kind == Kind::reduce;
    if (part.kind != Kind::all_gather && part.kind != Kind::broadcast) use.from = from.offset;
    if (!reduces) use.to = to.offset;
  }
  auto& uses = is_message(part) ? nccl_.messages : nccl_.collectives;
  ++(use.known == 1 ? uses.in_known_memory : uses.elsewhere);
  return use;
}

std::vector<FakeTransfer> FakeComm::tell_use(const Part& part, const FakeUse& use) {
  if (!is_message(part)) return exchange(&use, sizeof use, use_of_collective);
  std::vector<FakeTransfer> transfers;
  if (part.peer == rank_) return transfers;
  transfers.push_back(part.kind == Kind::send
                          ? send_to(part.peer, &use, sizeof use, tag(use_of_message))
                          : receive_from(part.peer, sizeof use, tag(use_of_message)));
  return transfers;
}

void FakeComm::expect_like(const Part& part, const FakeUse& use,
                           const std::vector<FakeTransfer>& others) const {
  if (part.kind == Kind::send) return;
  const auto count = std::min(others.size(), static_cast<std::size_t>(size()));
  for (std::size_t index = 0; index < count; ++index) {
    FakeUse other;
    std::memcpy(&other, others[index].bytes.data(), sizeof other);
    if (other.known != use.known) {
      throw std::logic_error("NCCL knows one member's memory of an operation, and not another's");
    }
    if (other.from != use.from || other.to != use.to) {
      throw std::logic_error("members work at different offsets of memory that GPUs address once");
    }
  }
}

}  // namespace trireme::testing
