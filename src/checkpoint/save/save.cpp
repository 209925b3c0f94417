// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/save.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/save/save_run.hpp"
#include "checkpoint/save/step_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

// Order of a save, as in save() at the end of this file: agree on what is saved, write this rank's
// file, gather what must be known of all files, make the manifest from that, commit.
namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

// 1. Agreement on what is saved.

/// Contents follow from layout and model on every rank; ranks that disagree would write files
/// which the manifest misdescribes. Collective.
void agree_on_contents(const SaveRequest& request, comm::ProcessGroup& world) {
  comm::agree_after(world, [&] {
    TRIREME_EXPECT(request.step >= 0 && request.tokens <= INT64_MAX,
                   "a save has a step and tokens of 0 or more");
    for (const auto& [dtype, files, elements, byte] : request.contents.buckets) {
      TRIREME_EXPECT(files.at(files.count - 1) < static_cast<std::size_t>(world.size()),
                     "every file is one rank's");
    }
  });
  comm::agree_equal(world, request.contents.hash(), "the contents of the checkpoint",
                    "please report this");
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

/// What rank 0 must know of a file: few bytes, so that those of ten thousand ranks are little.
struct FileRecord {
  std::uint64_t bytes;
  std::array<char, 64> checksums_sha256;
};
static_assert(sizeof(FileRecord) % sizeof(std::int32_t) == 0);

/// The files of all ranks, by rank. Collective.
std::vector<StoredFile> gather_files(const StoredFile& mine, comm::ProcessGroup& world) {
  FileRecord record{mine.bytes, {}};
  TRIREME_EXPECT(mine.checksums_sha256.size() == record.checksums_sha256.size(),
                 "a SHA-256 has 64 hexadecimal digits");
  std::copy(mine.checksums_sha256.begin(), mine.checksums_sha256.end(),
            record.checksums_sha256.begin());
  std::vector<FileRecord> records(static_cast<std::size_t>(world.size()));
  constexpr std::int64_t words = sizeof(FileRecord) / sizeof(std::int32_t);
  world.all_gather({&record, device::DType::i32, {words}},
                   {records.data(), device::DType::i32, {words * world.size()}});
  std::vector<StoredFile> files;
  for (const auto& [bytes, digest] : records) {
    files.push_back({shard_name(files.size()), bytes, {digest.begin(), digest.end()}});
  }
  return files;
}

Manifest manifest_of(const SaveRequest& request, std::vector<StoredFile> files) {
  Manifest manifest;
  manifest.step = request.step;
  manifest.tokens = request.tokens;
  manifest.tool_version = request.tool_version;
  manifest.state = request.state;
  manifest.files = std::move(files);
  manifest.contents = request.contents;
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

/// Puts manifest.json into the folder and reads it as every reader does: a step that cannot be
/// loaded must not replace one that can.
void write_manifest(FileSystem& files, const fs::path& temporary, const Manifest& manifest,
                    std::string_view key) {
  const auto unfinished = temporary / "manifest.json.tmp";
  write_text(files, unfinished, manifest_text(manifest, key));
  rename(files, unfinished, temporary / "manifest.json");
  sync_folder(files, temporary);
  const auto read = read_manifest(temporary);
  if (read.ok()) return;
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("{} (no run could load this checkpoint, so that it is not saved; "
                                 "older ones are untouched)",
                                 read.failure().text));
}

/// Renames the folder to step-N: the moment at which the checkpoint counts (docs/decisions/0027).
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

}  // namespace

SaveRun::SaveRun(SaveRequest request, comm::ProcessGroup& world, const SaveOptions& options)
    : request_(std::move(request)),
      options_(options),
      commits_(world.rank() == 0),
      rank_(static_cast<std::size_t>(world.rank())),
      start_(std::chrono::steady_clock::now()) {
  agree_on_contents(request_, world);
  for (const auto& shard : request_.shards) report_.written_bytes += shard.byte_count();
  report_.payload_bytes = request_.contents.payload_bytes();
  comm::agree_after(world, [&] {
    if (!commits_) return;
    temporary_ = make_temporary_folder(options_.files, request_.checkpoints, request_.step);
  });
  temporary_ = comm::broadcast_bytes(world, temporary_.string());
}

void SaveRun::agree_or_remove_folder(const base::Status& status, comm::ProcessGroup& world) {
  try {
    comm::agree(world, status);
  } catch (const comm::AgreedError&) {
    // All ranks are here and have closed their files. A failed removal leaves garbage that
    // collect_garbage() finds; the failure of the save is the one to report.
    if (commits_ && options_.files.remove_folder(temporary_) != 0) {
      base::log::local::warning("checkpoint", "cannot remove '{}'", temporary_.string());
    }
    throw;
  }
}

void SaveRun::write_file() {
  mine_ = write_shard(options_, temporary_, request_, rank_);
}

void SaveRun::gather(const base::Status& written, comm::ProcessGroup& world) {
  agree_or_remove_folder(written, world);
  all_ = gather_files(mine_, world);
}

void SaveRun::commit() {
  if (!commits_) return;
  auto& files = options_.files;
  auto manifest = manifest_of(request_, std::move(all_));
  if (has_master(manifest.contents)) {
    manifest.files.push_back(write_master(files, temporary_, manifest));
  }
  write_manifest(files, temporary_, manifest, request_.key);
  if (options_.before_commit) options_.before_commit();
  report_.folder = checkpoint::commit(files, temporary_, manifest.step);
}

SaveReport SaveRun::finish(const base::Status& committed, comm::ProcessGroup& world) {
  agree_or_remove_folder(committed, world);
  report_.folder = comm::broadcast_bytes(world, report_.folder.string());
  report_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return report_;
}

SaveReport save(const SaveRequest& request, comm::ProcessGroup& world, const SaveOptions& options) {
  SaveRun run(request, world, options);
  run.gather(comm::status_of([&] { run.write_file(); }), world);
  return run.finish(comm::status_of([&] { run.commit(); }), world);
}

}  // namespace trireme::checkpoint
