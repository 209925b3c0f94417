// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// Elements that the slice of a part in one file gives to one destination.
struct Transfer {
  const StoredTensor* tensor = nullptr;
  PartSlice slice;
  const LoadItem* item = nullptr;
  BoxRuns runs;  ///< of the whole part; only what lies in the slice is transferred

  std::uint64_t element_bytes() const { return device::size_of(tensor->dtype); }
  /// File bytes of the slice.
  std::uint64_t begin() const { return slice.byte; }
  std::uint64_t end() const {
    return slice.byte + static_cast<std::uint64_t>(slice.end - slice.begin) * element_bytes();
  }
  /// Byte of an element of the slice.
  std::uint64_t byte_of(std::int64_t element) const {
    return slice.byte + static_cast<std::uint64_t>(element - slice.begin) * element_bytes();
  }
};

/// Run of a transfer, in elements of the part; `held` is the first element's place in the
/// destination.
struct TransferRun {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t held;
};
/// Number of the first run with elements from `element` on, and the part of a run that lies in the
/// slice; none past the last.
std::int64_t first_run(const Transfer& transfer, std::int64_t element);
std::optional<TransferRun> run_at(const Transfer& transfer, std::int64_t number);

/// Transfers from one file to a rank, and the blocks to read for them.
struct FileReads {
  std::size_t file = 0;
  std::vector<Transfer> transfers;    ///< ascending by byte; slices are equal or disjoint
  std::vector<std::uint64_t> blocks;  ///< ascending; each holds a required element
};

/// Failures (checkpoint): no such tensor, other shape or type, box outside the shape.
base::Result<std::vector<FileReads>> plan_reads(const Manifest& manifest,
                                                std::span<const LoadItem> items);

/// Calls visit(byte of the file, elements, place in the destination of the first) for each run of
/// the transfer's elements that lie in file bytes [begin, end), ascending. Both ends lie between
/// elements, as those of blocks do: buckets begin at multiples of the element's size.
template <typename Visit>
void each_run_within(const Transfer& transfer, std::uint64_t begin, std::uint64_t end,
                     const Visit& visit) {
  const auto size = transfer.element_bytes();
  const auto skipped = begin > transfer.begin() ? (begin - transfer.begin()) / size : 0;
  for (auto number = first_run(transfer, transfer.slice.begin + static_cast<std::int64_t>(skipped));
       const auto run = run_at(transfer, number); ++number) {
    const auto run_begin = transfer.byte_of(run->begin);
    if (run_begin >= end) return;
    const auto skip = begin > run_begin ? begin - run_begin : 0;
    const auto stop = std::min(transfer.byte_of(run->end), end);
    visit(run_begin + skip, (stop - run_begin - skip) / size,
          run->held + static_cast<std::int64_t>(skip / size));
  }
}

/// Visits the transfers whose slice meets file bytes [begin, end): neighbours in the list.
template <typename Visit>
void each_transfer_within(const FileReads& reads, std::uint64_t begin, std::uint64_t end,
                          const Visit& visit) {
  auto transfer =
      std::partition_point(reads.transfers.begin(), reads.transfers.end(),
                           [begin](const Transfer& each) { return each.end() <= begin; });
  for (; transfer != reads.transfers.end() && transfer->begin() < end; ++transfer) {
    visit(*transfer);
  }
}

/// Copies so many elements, in the type that they are stored in, to place `held` of the transfer's
/// destination, in its type.
void copy_to_item(const Transfer& transfer, const std::byte* from, std::uint64_t elements,
                  std::int64_t held);

/// Copies what the plan has in bytes [begin, begin + bytes.size()) of its file to the destinations.
void deliver(const FileReads& reads, std::uint64_t begin, std::span<const std::byte> bytes);

}  // namespace trireme::checkpoint
