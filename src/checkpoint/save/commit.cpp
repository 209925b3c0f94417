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

/// True if the object has this text; false if it has another, or does not tell.
bool has_text(const fs::path& url, std::string_view text) {
  try {
    return objects::read_text(url, text.size() + 1) == text;
  } catch (const store::StoreError&) {
    return false;
  }
}

/// Commits to an object store: the manifest is written at once, over that of an earlier save of the
/// step if there was one.
void put_manifest(Place& place, std::string_view text) {
  const auto step = place.path.parent_path();
  const auto url = step / "manifest.json";
  place.may_count = true;
  try {
    if (place.has_step) {
      objects::write_text(url, text);
      return;
    }
    if (objects::create(url, text)) return;
  } catch (const store::StoreError& refused) {
    if (has_text(url, text)) return;
    place.may_count = refused.may_pass();
    throw;
  }
  place.may_count = false;
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("'{}' was committed by another save meanwhile (two runs save to "
                                 "one place); give each run a checkpoint.directory of its own",
                                 step.string()));
}

}  // namespace

fs::path path_of_save(const fs::path& checkpoints, std::string_view name) {
  if (!store::is_url(checkpoints)) return checkpoints / name;
  const auto parsed = parse_folder_name(name);
  TRIREME_EXPECT(parsed.has_value(), "the name of a save has its step");
  return checkpoints / step_folder_name(parsed->step) / id_of_temporary(name);
}

std::string folder_of_files(const Place& place) {
  return store::is_url(place.path) ? place.path.filename().string() : std::string();
}

Place make_place(FileSystem& files, const fs::path& path) {
  if (store::is_url(path)) return {path};
  const auto checkpoints = path.parent_path();
  std::error_code error;
  const auto changed = base::make_folders(checkpoints, error);
  if (error) throw_storage_error("make folder", checkpoints, error.value());
  for (const auto& parent : changed) sync_folder(files, parent);
  if (files.make_folder(path) != 0) throw_storage_error("make folder", path, errno);
  return {path};
}

void look_for_step(Place& place) {
  place.has_step = store::is_url(place.path) && is_step(place.path.parent_path());
}

void remove_place(FileSystem& files, const Place& place) {
  // Files that stay are garbage that collect_garbage() finds; the failure of the save is the one to
  // report.
  const auto warn = [&place](std::string_view reason) {
    base::log::local::warning("checkpoint", "cannot remove '{}': {}", place.path.string(), reason);
  };
  if (place.may_count) return;
  try {
    if (store::is_url(place.path)) {
      objects::remove_folder(place.path);
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
  const auto read =
      is_object ? manifest_from(place.path.parent_path(), manifest) : read_manifest(place.path);
  if (!read.ok()) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("{} (no run could load this checkpoint, so that it is not "
                                   "saved; older ones are untouched)",
                                   read.failure().text));
  }
  if (before_commit) before_commit();
  if (!is_object) return give_name(files, place.path, step);
  put_manifest(place, manifest);
  return place.path.parent_path();
}

}  // namespace trireme::checkpoint
