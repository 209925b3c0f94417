// SPDX-License-Identifier: Apache-2.0
#include "support/simt/memory.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include "support/simt/executor.hpp"

#include <algorithm>

namespace trireme::device::simt {
namespace {

/// Offsets of all elements of a tensor, in elements.
std::vector<std::int64_t> offsets_of(const Tensor& tensor) {
  std::vector<std::int64_t> offsets{0};
  for (int index = 0; index < tensor.rank(); ++index) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(tensor.dim(index)));
    for (const auto offset : offsets) {
      for (std::int64_t i = 0; i < tensor.dim(index); ++i) {
        next.push_back(offset + i * tensor.stride(index));
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

std::int64_t extent_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (int index = 0; index < tensor.rank(); ++index) {
    last += (tensor.dim(index) - 1) * tensor.stride(index);
  }
  return last + 1;
}

}  // namespace

Allocation::Allocation(std::byte* base, std::size_t element_bytes, std::size_t count)
    : base_(base), element_bytes_(element_bytes), states_(count), marks_(count) {}

bool Allocation::contains(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return at >= base_ && at < base_ + states_.size() * element_bytes_;
}

void Allocation::grant(std::size_t index, Role role) {
  auto& state = states_.at(index);
  switch (role) {
    case Role::input:
      state |= inside | written;
      return;
    case Role::output:
      state |= inside | writable | owed;
      return;
    case Role::in_out:
      state |= inside | written | writable;
      return;
  }
}

std::size_t Allocation::first_unwritten() const {
  const auto missing = std::find_if(states_.begin(), states_.end(),
                                    [](std::uint8_t state) { return (state & owed) != 0; });
  return static_cast<std::size_t>(missing - states_.begin());
}

void* Allocation::check(const void* origin, std::int64_t index, int count, std::size_t bytes,
                        Access access, const Place& where) {
  auto& executor = Executor::here();
  const auto first =
      (static_cast<const std::byte*>(origin) - base_) / static_cast<std::int64_t>(element_bytes_) +
      index;
  auto* address = base_ + first * static_cast<std::int64_t>(element_bytes_);
  const char* verb = access == Access::read ? "reads" : "writes";
  if (bytes != element_bytes_) {
    executor.fail(where, base::format("{} {} bytes at a time of memory that holds elements of {}",
                                      verb, bytes, element_bytes_));
  }
  if (reinterpret_cast<std::uintptr_t>(address) % (bytes * static_cast<std::size_t>(count)) != 0) {
    executor.fail(where, base::format("{} {} elements together at an address that is not a "
                                      "multiple of {} bytes (misaligned): {}",
                                      verb, count, bytes * static_cast<std::size_t>(count),
                                      executor.memory().describe(address)));
  }
  const auto& actor = executor.actor();
  for (auto element = first; element < first + count; ++element) {
    const auto* at = base_ + element * static_cast<std::int64_t>(element_bytes_);
    const bool exists = element >= 0 && element < static_cast<std::int64_t>(states_.size()) &&
                        (states_[static_cast<std::size_t>(element)] & inside) != 0;
    if (!exists) {
      executor.fail(where,
                    base::format("{} out of bounds: {}", verb, executor.memory().describe(at)));
    }
    auto& state = states_[static_cast<std::size_t>(element)];
    auto& marks = marks_[static_cast<std::size_t>(element)];
    if (access == Access::read && (state & written) == 0) {
      executor.fail(
          where, base::format("reads what was never written: {}", executor.memory().describe(at)));
    }
    if (access == Access::write && (state & writable) == 0) {
      executor.fail(where, base::format("writes to an input: {}", executor.memory().describe(at)));
    }
    const auto conflict =
        access == Access::read ? marks.read(actor, where) : marks.write(actor, where);
    if (conflict) executor.fail_race(where, access, *conflict, executor.memory().describe(at));
    if (access == Access::write) {
      state = static_cast<std::uint8_t>((state | written) & ~static_cast<unsigned>(owed));
    }
  }
  const auto moved = static_cast<std::int64_t>(bytes) * count;
  (access == Access::read ? traffic_.read_bytes : traffic_.written_bytes) += moved;
  ++(access == Access::read ? traffic_.reads : traffic_.writes);
  return address;
}

void Memory::declare(std::string name, const Tensor& tensor, Role role) {
  TRIREME_EXPECT(!settled_, "all tensors are declared before the first launch");
  if (!tensor || tensor.element_count() == 0) return;
  auto* begin = static_cast<std::byte*>(tensor.raw());
  auto* end = begin + extent_of(tensor) * static_cast<std::int64_t>(size_of(tensor.dtype()));
  declared_.push_back({std::move(name), tensor, role, begin, end});
}

/// Views that overlap become one allocation, in which each grants its own elements.
void Memory::settle() {
  if (settled_) return;
  settled_ = true;
  auto order = declared_;
  std::sort(order.begin(), order.end(),
            [](const Declared& a, const Declared& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < order.size();) {
    auto* begin = order[i].begin;
    auto* end = order[i].end;
    const auto bytes = size_of(order[i].tensor.dtype());
    std::size_t next = i;
    while (next < order.size() && order[next].begin < end) {
      TRIREME_EXPECT(size_of(order[next].tensor.dtype()) == bytes,
                     "tensors of different element sizes overlap");
      end = std::max(end, order[next++].end);
    }
    auto allocation =
        std::make_unique<Allocation>(begin, bytes, static_cast<std::size_t>(end - begin) / bytes);
    for (; i < next; ++i) {
      const auto first = static_cast<std::size_t>(order[i].begin - begin) / bytes;
      for (const auto offset : offsets_of(order[i].tensor)) {
        allocation->grant(first + static_cast<std::size_t>(offset), order[i].role);
      }
    }
    allocations_.push_back(std::move(allocation));
  }
}

void* Memory::workspace(std::size_t element_bytes, std::size_t count) {
  // 16 bytes is what vector accesses ask for at most, and what new gives.
  workspaces_.push_back(std::make_unique<std::byte[]>(element_bytes * count));
  auto* base = workspaces_.back().get();
  allocations_.push_back(std::make_unique<Allocation>(base, element_bytes, count));
  for (std::size_t i = 0; i < count; ++i) {
    // Nobody is owed a whole workspace.
    allocations_.back()->grant(i, Role::output);
  }
  return base;
}

Target* Memory::find(const void* address) {
  if (address == nullptr) return nullptr;
  settle();
  for (const auto& allocation : allocations_) {
    if (allocation->contains(address)) return allocation.get();
  }
  throw Fault("a kernel is given memory that its operation does not have");
}

std::map<std::string, Traffic> Memory::traffic() const {
  std::map<std::string, Traffic> all;
  for (const auto& allocation : allocations_) {
    std::string name = "workspace";
    for (const auto& declared : declared_) {
      if (allocation->contains(declared.begin)) name = declared.name;
    }
    auto& sum = all[name];
    const auto& more = allocation->traffic();
    sum.read_bytes += more.read_bytes;
    sum.reads += more.reads;
    sum.written_bytes += more.written_bytes;
    sum.writes += more.writes;
  }
  return all;
}

std::string Memory::describe(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  for (const auto& declared : declared_) {
    const auto size = static_cast<std::int64_t>(size_of(declared.tensor.dtype()));
    // A little before and after is still called by the tensor's name.
    const auto slack = std::max<std::int64_t>(64 * size, (declared.end - declared.begin) / 4);
    if (at < declared.begin - slack || at >= declared.end + slack) continue;
    return base::format("offset {} from the first element of '{}' ({})",
                        (at - declared.begin) / size, declared.name, declared.tensor.text());
  }
  for (const auto& allocation : allocations_) {
    const auto size = static_cast<std::int64_t>(allocation->element_bytes());
    const auto offset = (at - allocation->base()) / size;
    if (at < allocation->base() ||
        offset > static_cast<std::int64_t>(2 * allocation->count() + 64)) {
      continue;
    }
    return base::format("offset {} of a workspace of {} elements of {} bytes", offset,
                        allocation->count(), size);
  }
  return "memory that the operation does not have";
}

void Memory::expect_written(const std::string& operation) {
  settle();
  for (const auto& allocation : allocations_) {
    const auto index = allocation->first_unwritten();
    if (index == allocation->count()) continue;
    const auto* at = allocation->base() + index * allocation->element_bytes();
    const bool own = std::any_of(workspaces_.begin(), workspaces_.end(), [&](const auto& block) {
      return block.get() == allocation->base();
    });
    if (own) continue;
    throw Fault(base::format("{} never writes its output: {}", operation, describe(at)));
  }
}

}  // namespace trireme::device::simt
