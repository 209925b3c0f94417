// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/items.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <vector>

namespace trireme::checkpoint {

/// Collective over the group. Host-blocking: yes. Boxes that each rank holds, by rank.
std::vector<std::vector<HeldBox>> gather_held(comm::ProcessGroup& group,
                                              const std::vector<HeldBox>& mine);

/// A box in a shard; its elements begin at `byte` of the file.
struct WrittenBox {
  HeldBox box;
  std::uint64_t byte = 0;
};

/// Shard that one rank wrote, and the boxes in it.
struct ShardRecord {
  StoredFile file;
  std::vector<WrittenBox> boxes;
};

/// Collective over the group. Host-blocking: yes. Records by rank, without those of ranks that
/// wrote no box.
std::vector<ShardRecord> gather_records(comm::ProcessGroup& group, const ShardRecord& mine);

}  // namespace trireme::checkpoint
