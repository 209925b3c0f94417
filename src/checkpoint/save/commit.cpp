// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/commit.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/folder_names.hpp"

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

}  // namespace

fs::path make_temporary_folder(FileSystem& files, const fs::path& checkpoints,
                               const std::string& name) {
  std::error_code error;
  const auto changed = base::make_folders(checkpoints, error);
  if (error) throw_storage_error("make folder", checkpoints, error.value());
  for (const auto& parent : changed) sync_folder(files, parent);
  auto folder = checkpoints / name;
  if (files.make_folder(folder) != 0) throw_storage_error("make folder", folder, errno);
  return folder;
}

void write_manifest(FileSystem& files, const fs::path& temporary, std::string_view text) {
  const auto unfinished = temporary / "manifest.json.tmp";
  write_text(files, unfinished, text);
  rename(files, unfinished, temporary / "manifest.json");
  sync_folder(files, temporary);
  const auto read = read_manifest(temporary);
  if (read.ok()) return;
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("{} (no run could load this checkpoint, so that it is not saved; "
                                 "older ones are untouched)",
                                 read.failure().text));
}

fs::path commit(FileSystem& files, const fs::path& temporary, std::int64_t step) {
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

}  // namespace trireme::checkpoint
