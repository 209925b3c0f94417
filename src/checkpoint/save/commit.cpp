// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/commit.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/objects/objects.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

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

void write_manifest(FileSystem& files, const fs::path& temporary, std::string_view text) {
  const auto unfinished = temporary / "manifest.json.tmp";
  write_text(files, unfinished, text);
  rename(files, unfinished, temporary / "manifest.json");
  sync_folder(files, temporary);
}

/// Name of a step for its folder, in place of an earlier one of the same step.
fs::path give_name(FileSystem& files, const fs::path& temporary, std::int64_t step) {
  const auto target = temporary.parent_path() / step_folder_name(step);
  std::error_code error;
  const auto found = fs::symlink_status(target, error);
  if (!fs::status_known(found)) throw_storage_error("examine", target, error.value());
  if (fs::exists(found)) {
    replace(files, temporary, target, step);
  } else {
    rename(files, temporary, target);
    sync_folder(files, target.parent_path());
  }
  write_latest(files, target);
  return target;
}

}  // namespace

fs::path path_of_save(const fs::path& checkpoints, std::string_view name) {
  if (!store::is_url(checkpoints)) return checkpoints / name;
  const auto parsed = parse_folder_name(name);
  TRIREME_EXPECT(parsed.has_value(), "the name of a save has its step");
  return checkpoints / step_folder_name(parsed->step);
}

Place make_place(FileSystem& files, const fs::path& path) {
  if (store::is_url(path)) return {path, false};
  const auto checkpoints = path.parent_path();
  std::error_code error;
  const auto changed = base::make_folders(checkpoints, error);
  if (error) throw_storage_error("make folder", checkpoints, error.value());
  for (const auto& parent : changed) sync_folder(files, parent);
  if (files.make_folder(path) != 0) throw_storage_error("make folder", path, errno);
  return {path, false};
}

void look_for_step(Place& place) {
  place.has_step = store::is_url(place.path) && is_step(place.path);
}

void remove_place(FileSystem& files, const Place& place) {
  // What stays is garbage that collect_garbage() finds; the failure of the save is the one to
  // report.
  const auto warn = [&place](std::string_view reason) {
    base::log::local::warning("checkpoint", "cannot remove '{}': {}", place.path.string(), reason);
  };
  if (place.has_step) return;
  try {
    if (store::is_url(place.path)) {
      objects::remove_step(place.path);
    } else if (files.remove_folder(place.path) != 0) {
      warn(std::strerror(errno));
    }
  } catch (const base::Error& error) {
    warn(error.what());
  }
}

fs::path commit(FileSystem& files, Place& place, std::int64_t step, std::string_view manifest,
                const std::function<void()>& before_commit) {
  const bool is_object = store::is_url(place.path);
  if (!is_object) write_manifest(files, place.path, manifest);
  const auto read = is_object ? manifest_from(place.path, manifest) : read_manifest(place.path);
  if (!read.ok()) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("{} (no run could load this checkpoint, so that it is not "
                                   "saved; older ones are untouched)",
                                   read.failure().text));
  }
  if (before_commit) before_commit();
  if (!is_object) return give_name(files, place.path, step);
  if (place.has_step) {
    objects::write_text(place.path / "manifest.json", manifest);
  } else if (!objects::create(place.path / "manifest.json", manifest)) {
    place.has_step = true;
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' was committed by another save meanwhile (two runs save to "
                                   "one place); give each run a checkpoint.directory of its own",
                                   place.path.string()));
  }
  return place.path;
}

}  // namespace trireme::checkpoint
