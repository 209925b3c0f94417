// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/save.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/manifest/check.hpp"
#include "checkpoint/manifest/manifest_text.hpp"
#include "checkpoint/save/records.hpp"
#include "checkpoint/save/step_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

// Order of a save, as in save() at the end: plan what this rank writes, write its shard, gather the
// records of all shards, make the manifest from them, commit.
namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

// 1. Plan.

bool is_empty(const SaveItem& item) {
  return std::find(item.box.length.begin(), item.box.length.end(), 0) != item.box.length.end();
}

void check(const SaveItem& item) {
  base::success_or_throw(check_name(item.name));
  if (item.shape.size() == item.box.offset.size() && item.shape.size() == item.box.length.size() &&
      holds(item.data, item.box)) {
    return;
  }
  throw base::Error(
      base::ExitCode::internal,
      base::format("tensor '{}' [{}]: {} does not hold its box {}", item.name,
                   base::join(item.shape, ", "), item.data.text(), layout::text(item.box)));
}

/// Boxes that this rank writes. Collective.
std::vector<ShardPiece> plan(const SaveRequest& request, comm::ProcessGroup& world) {
  std::vector<HeldBox> mine;
  std::vector<const SaveItem*> items;
  comm::agree_after(world, [&] {
    if (request.step < 0 || request.tokens > INT64_MAX) {
      throw base::Error(base::ExitCode::internal, "a save needs a step and tokens of 0 or more");
    }
    for (const auto& item : request.items) {
      if (is_empty(item)) continue;
      check(item);
      mine.push_back({item.name, item.shape, item.data.dtype(), item.box});
      items.push_back(&item);
    }
  });
  const auto assignments = assign_writers(gather_held(world, mine));
  std::vector<ShardPiece> pieces;
  for (const auto& [item, box] : assignments[static_cast<std::size_t>(world.rank())]) {
    pieces.push_back({items[item], box});
  }
  return pieces;
}

// 2. A folder that is not committed yet.

/// RUN/checkpoints/step-N.tmp-<uuid>, made together with the folders above it.
fs::path make_temporary_folder(FileSystem& files, const fs::path& checkpoints, std::int64_t step) {
  std::error_code error;
  const bool made = fs::create_directories(checkpoints, error);
  if (error) throw_storage_error("make folder", checkpoints, error.value());
  if (made) sync_folder(files, fs::absolute(checkpoints).parent_path());
  auto folder = checkpoints / temporary_name(step);
  if (files.make_folder(folder) != 0) throw_storage_error("make folder", folder, errno);
  return folder;
}

// 3. The manifest.

Manifest manifest_of(const SaveRequest& request, std::vector<ShardRecord> records) {
  Manifest manifest;
  manifest.step = request.step;
  manifest.tokens = request.tokens;
  manifest.tool_version = request.tool_version;
  manifest.state = request.state;
  std::map<std::string, StoredTensor> tensors;
  for (auto& record : records) {
    for (auto& [held, byte] : record.boxes) {
      auto& tensor = tensors[held.name];
      if (tensor.boxes.empty()) tensor = {held.name, held.dtype, held.shape, {}};
      tensor.boxes.push_back({std::move(held.box), manifest.files.size(), byte});
    }
    manifest.files.push_back(std::move(record.file));
  }
  for (auto& [name, tensor] : tensors) {
    std::sort(tensor.boxes.begin(), tensor.boxes.end(),
              [](const StoredBox& a, const StoredBox& b) { return a.box.offset < b.box.offset; });
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

// 4. The commit.

void rename(FileSystem& files, const fs::path& from, const fs::path& to) {
  if (files.rename(from, to) != 0) throw_storage_error("rename", from, errno);
}

/// Moves the new folder to the name that an older one of the same step has. At every moment one
/// of the two is found by a recovery scan.
void replace(FileSystem& files, const fs::path& temporary, const fs::path& target,
             std::int64_t step) {
  auto old = temporary;
  if (files.exchange(temporary, target) != 0) {
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      throw_storage_error("exchange", target, errno);
    }
    old = target.parent_path() / replaced_name(step);
    rename(files, target, old);
    rename(files, temporary, target);
  }
  sync_folder(files, target.parent_path());
  if (files.remove_folder(old) != 0) {
    base::log::local::warning("checkpoint", "cannot remove the replaced '{}'", old.string());
  }
}

/// Hint for people and scripts, not synced; the checkpoint is valid without it.
bool write_hint(FileSystem& files, const fs::path& target) {
  const auto folder = target.parent_path();
  const auto temporary = folder / "LATEST.tmp";
  const auto text = target.filename().string() + "\n";
  const int descriptor = files.open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return false;
  auto file = base::File::adopt(descriptor);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return files.write(file.get(), bytes, 0) == static_cast<ssize_t>(bytes.size()) &&
         files.close(file.release()) == 0 && files.rename(temporary, folder / "LATEST") == 0;
}

void write_latest(FileSystem& files, const fs::path& target) {
  if (write_hint(files, target)) return;
  base::log::local::warning("checkpoint",
                            "{} is committed, but the hint LATEST does not name it: {}",
                            target.filename().string(), std::strerror(errno));
}

/// Puts manifest.json into the folder and renames it to step-N: the moment at which the checkpoint
/// counts (docs/decisions/0027).
fs::path commit(FileSystem& files, const fs::path& temporary, std::int64_t step,
                std::string_view manifest) {
  const auto unfinished = temporary / "manifest.json.tmp";
  write_text(files, unfinished, manifest);
  rename(files, unfinished, temporary / "manifest.json");
  sync_folder(files, temporary);
  const auto target = temporary.parent_path() / step_folder_name(step);
  if (fs::exists(fs::symlink_status(target))) {
    replace(files, temporary, target, step);
  } else {
    rename(files, temporary, target);
    sync_folder(files, target.parent_path());
  }
  write_latest(files, target);
  return target;
}

}  // namespace

SaveReport save(const SaveRequest& request, comm::ProcessGroup& world, const SaveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const bool commits = world.rank() == 0;
  auto& files = options.files;
  SaveReport report;
  const auto pieces = plan(request, world);
  for (const auto& piece : pieces) report.written_bytes += piece.bytes();
  fs::path temporary;
  comm::agree_after(world, [&] {
    if (commits) temporary = make_temporary_folder(files, request.checkpoints, request.step);
  });
  temporary = comm::broadcast_bytes(world, temporary.string());
  try {
    ShardRecord mine;
    comm::agree_after(world, [&] {
      if (pieces.empty()) return;
      mine = write_shard(files, temporary, world.rank(), pieces, options.threads);
    });
    auto records = gather_records(world, mine);
    comm::agree_after(world, [&] {
      auto manifest = manifest_of(request, std::move(records));
      report.payload_bytes = manifest.payload_bytes();
      if (!commits) return;
      manifest.files.push_back(write_master(files, temporary, manifest));
      report.folder = commit(files, temporary, manifest.step, committable_text(manifest));
    });
    report.folder = comm::broadcast_bytes(world, report.folder.string());
  } catch (const comm::AgreedError&) {
    // All ranks are here and have closed their files. A failed removal leaves garbage that
    // collect_garbage() finds; the failure of the save is the one to report.
    if (commits && files.remove_folder(temporary) != 0) {
      base::log::local::warning("checkpoint", "cannot remove '{}'", temporary.string());
    }
    throw;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace trireme::checkpoint
