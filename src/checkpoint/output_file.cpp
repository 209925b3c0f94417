// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/output_file.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace trireme::checkpoint {
namespace {

const char* remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free space or raise the quota; where a run keeps several steps, fewer "
             "(checkpoint.keep_last)";
    case EFBIG:
      return "raise the limit on file size (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that this user may write (run.directory, checkpoint.directory, "
             "checkpoint.local_directory)";
    case EIO:
      return "the storage is failing: look at the system's log and save elsewhere "
             "(run.directory, checkpoint.directory, checkpoint.local_directory)";
    default:
      return "look at the storage, or save elsewhere (run.directory, checkpoint.directory, "
             "checkpoint.local_directory)";
  }
}

}  // namespace

void throw_storage_error(std::string_view doing, const std::filesystem::path& path,
                         int error_number) {
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("cannot {} '{}': {} (this checkpoint is not saved; older ones are untouched); "
                   "{}",
                   doing, path.string(), std::strerror(error_number), remedy(error_number)));
}

OutputFile::OutputFile(FileSystem& files, std::filesystem::path path)
    : files_(files), path_(std::move(path)) {
  const int descriptor = files_.open(path_, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (descriptor < 0) throw_storage_error("open", path_, errno);
  file_ = base::File::adopt(descriptor);
}

void OutputFile::write_directly() {
  const int descriptor = files_.open(path_, O_WRONLY | O_DIRECT | O_NOFOLLOW, 0);
  if (descriptor >= 0) {
    direct_ = base::File::adopt(descriptor);
  } else if (errno != EINVAL && errno != EOPNOTSUPP) {
    throw_storage_error("open", path_, errno);
  }
}

void OutputFile::allocate(std::uint64_t bytes) {
  while (files_.allocate(file_.get(), bytes) != 0) {
    if (errno == EINTR) continue;
    // Full disk is then detected by a write or the sync, which are checked, too.
    if (errno == EOPNOTSUPP || errno == ENOSYS) return;
    throw_storage_error(base::format("reserve {} for", base::bytes_text(bytes)), path_, errno);
  }
}

std::size_t OutputFile::directly_writable(std::span<const std::byte> bytes,
                                          std::uint64_t offset) const {
  const bool aligned = offset % direct_alignment == 0 &&
                       reinterpret_cast<std::uintptr_t>(bytes.data()) % direct_alignment == 0;
  if (!direct_ || direct_refused_ || !aligned) return 0;
  return bytes.size() / direct_alignment * direct_alignment;
}

void OutputFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto direct = directly_writable(bytes, offset);
    const auto count = direct > 0 ? files_.write(direct_.get(), bytes.first(direct), offset)
                                  : files_.write(file_.get(), bytes, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL && direct > 0) {
      direct_refused_ = true;
      continue;
    }
    if (count < 0) throw_storage_error("write", path_, errno);
    // A regular file always accepts at least one byte; without this check a faulty one would loop
    // forever.
    if (count == 0) throw_storage_error("write", path_, EIO);
    if (direct == 0) {
      files_.start_writeback(file_.get(), offset, static_cast<std::uint64_t>(count));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void OutputFile::finish() {
  if (files_.sync(file_.get()) != 0) throw_storage_error("sync", path_, errno);
  if (files_.close(file_.release()) != 0) throw_storage_error("close", path_, errno);
  if (direct_ && files_.close(direct_.release()) != 0) throw_storage_error("close", path_, errno);
}

void write_text(FileSystem& files, const std::filesystem::path& path, std::string_view text) {
  OutputFile file(files, path);
  file.allocate(text.size());
  file.write(std::as_bytes(std::span(text.data(), text.size())), 0);
  file.finish();
}

void sync_folder(FileSystem& files, const std::filesystem::path& folder) {
  const int descriptor = files.open(folder, O_RDONLY | O_DIRECTORY, 0);
  if (descriptor < 0) throw_storage_error("open folder", folder, errno);
  auto handle = base::File::adopt(descriptor);
  if (files.sync(handle.get()) != 0 && !base::lacks_folder_sync(errno)) {
    throw_storage_error("sync folder", folder, errno);
  }
  if (files.close(handle.release()) != 0) throw_storage_error("close folder", folder, errno);
}

}  // namespace trireme::checkpoint
