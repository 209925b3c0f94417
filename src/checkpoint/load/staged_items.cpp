// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/staged_items.hpp"

#include "trireme/device/device.hpp"

#include <algorithm>
#include <utility>

namespace trireme::checkpoint {
namespace {

/// Begins of values in host memory: each as a tensor of its own would.
constexpr std::size_t alignment = device::Arena::alignment;
/// Values of a turn: a slice of a flat buffer is a few boxes, each of which is aligned.
constexpr std::size_t turn_bytes = load_staging_bytes - 2 * device::Tensor::max_rank * alignment;

std::size_t room_of(const LoadItem& item) {
  return (item.destination.byte_count() + alignment - 1) / alignment * alignment;
}

std::size_t needed_bytes(const std::vector<std::vector<LoadItem>>& turns) {
  std::size_t most = 0;
  for (const auto& turn : turns) {
    std::size_t bytes = 0;
    for (const auto& item : turn) bytes += room_of(item);
    most = std::max(most, bytes);
  }
  return most;
}

/// Calls visit(item, its place in host memory).
template <typename Visit>
void each_place(const std::vector<LoadItem>& turn, const device::Arena& memory,
                const Visit& visit) {
  auto* at = static_cast<std::byte*>(memory.whole().raw());
  for (const auto& item : turn) {
    visit(item, at);
    at += room_of(item);
  }
}

}  // namespace

StagedItems::StagedItems(std::span<const LoadItem> items, device::Device& device)
    : device_(device) {
  for (const auto& item : items) add(item);
  if (turns_.empty()) return;
  memory_.emplace(device.staging(device::Purpose::optimizer, needed_bytes(turns_)));
}

void StagedItems::add(const LoadItem& item) {
  device::expect_contiguous(item.destination);
  const auto elements = layout::element_count(item.box);
  const auto size = device::size_of(item.destination.dtype());
  const auto values = item.destination.reshape({elements});
  for (std::int64_t begin = 0; begin < elements;) {
    if (turns_.empty() || bytes_ + alignment > turn_bytes) {
      turns_.emplace_back();
      bytes_ = 0;
    }
    const auto room = static_cast<std::int64_t>((turn_bytes - bytes_) / size);
    const auto end = std::min(elements, begin + room);
    for (auto& box : layout::boxes_of_flat_range(item.box, begin, end)) {
      const auto count = layout::element_count(box);
      turns_.back().push_back(
          {item.name, item.shape, std::move(box), values.slice(0, begin, count)});
      bytes_ += room_of(turns_.back().back());
      begin += count;
    }
  }
}

std::vector<LoadItem> StagedItems::of_turn(std::size_t turn) const {
  std::vector<LoadItem> items;
  if (turn >= turns_.size()) return items;
  TRIREME_EXPECT(memory_.has_value(), "turns have memory");
  each_place(turns_[turn], *memory_, [&](const LoadItem& item, std::byte* place) {
    items.push_back({item.name, item.shape, item.box, item.destination.moved_to(place)});
  });
  return items;
}

void StagedItems::store(std::size_t turn) {
  if (turn >= turns_.size()) return;
  TRIREME_EXPECT(memory_.has_value(), "turns have memory");
  each_place(turns_[turn], *memory_, [&](const LoadItem& item, std::byte* place) {
    device_.copy_in(place, item.destination);
  });
  device_.synchronize();
}

}  // namespace trireme::checkpoint
