// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/tensor.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// Host memory of a load to a device: what follows at once, because every rank takes part in each
/// turn of an exchange.
inline constexpr std::size_t load_staging_bytes = std::size_t{256} << 20;

/// Box of a logical tensor that this rank loads, and its destination.
///
/// Parameters have only their names ("layers.0.mlp.up.weight"); tensors that belong to one have a
/// prefix for their purpose ("adamw.first_moment/layers.0.mlp.up.weight"). Allowed: letters, digits
/// and "._-/:+".
struct LoadItem {
  std::string name;
  /// Shape, which must equal the stored one.
  layout::Shape shape;
  layout::Box box;
  /// Elements of the box: as many dimensions as the box (strides are allowed), or a contiguous run
  /// of the same element count in row-major order. f32 and bf16 are converted into each other
  /// (nearest even); any other difference from the stored type is refused.
  device::Tensor destination;
};

/// Access to the files of a step.
struct ReadAccess {
  FileSystem* files = &FileSystem::system();
  /// Time for which a read that the storage refuses (EIO, ESTALE, …) is tried again.
  std::chrono::milliseconds patience{15'000};
  /// Key that the manifest must be signed with (signature.hpp), unless it is empty; only rank 0's
  /// is used.
  std::string key = {};
};

struct LoadOptions {
  /// Reader threads of this rank; 0: one per core of its part of the cores that ranks share, at
  /// most four.
  int threads = 0;
  ReadAccess access = {};
  /// Where the destinations lie, contiguous; null: in host memory. To a device they go by
  /// load_staging_bytes of its host memory, on the thread that calls load(); load_alone() loads to
  /// host memory alone.
  device::Device* device = nullptr;
};

struct LoadReport {
  std::filesystem::path folder;
  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  base::Json state;
  std::uint64_t read_bytes = 0;  ///< by this rank, blocks in full
  std::uint64_t box_bytes = 0;   ///< of this rank's items, as they are stored
  /// Bytes that all ranks together have read, and the largest read_bytes / box_bytes.
  std::uint64_t all_read_bytes = 0;
  double largest_read_ratio = 0;
  double seconds = 0;
};

/// Collective over the group. Host-blocking: yes. Fills every destination from the parts that
/// meet it, whatever layout saved them. Each block that any rank needs is read by one rank, its
/// checksum is compared, and its values go from there to those that need them.
/// Throws Error (checkpoint) on every rank when any rank failed: no such tensor (with the nearest
/// name), another shape, or a bad block (naming file, tensors and byte range). Destinations hold
/// anything then.
LoadReport load(const std::filesystem::path& step_folder, std::span<const LoadItem> items,
                comm::ProcessGroup& world, const LoadOptions& options = {});

/// Loads on this rank only, from a step whose manifest it has read: for exports and other tools
/// that load one tensor after another. Returns the bytes read, blocks in full. Throws Error
/// (checkpoint) as load() does.
std::uint64_t load_alone(const std::filesystem::path& step_folder, const Manifest& manifest,
                         std::span<const LoadItem> items, const LoadOptions& options = {});

/// Choice of the items that a rank loads from the checkpoint with this manifest.
using ChooseItems = std::function<std::vector<LoadItem>(const Manifest&)>;

/// Collective over the group. Host-blocking: yes. load() of a path on the command line (find_step):
/// rank 0 resolves it, so that a run that saves meanwhile cannot give the ranks different steps.
LoadReport load_from(const std::filesystem::path& path, const ChooseItems& choose_items,
                     comm::ProcessGroup& world, const LoadOptions& options = {});

/// Collective over the group. Host-blocking: yes. Loads the newest step that can be loaded in
/// full; what is damaged is named in the log and the step before it is tried. Nothing when there is
/// no committed step at all. Throws Error (checkpoint) when there are steps and none can be
/// loaded, naming each with its reason; and when the storage refuses to give what it has, which is
/// no damage: falling back would lose work.
std::optional<LoadReport> load_newest(const std::filesystem::path& checkpoints,
                                      const ChooseItems& choose_items, comm::ProcessGroup& world,
                                      const LoadOptions& options = {});

}  // namespace trireme::checkpoint
