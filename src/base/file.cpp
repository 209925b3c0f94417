// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trireme::base {

std::optional<std::string> FileTraits::close(int descriptor) {
  if (::close(descriptor) == 0) return std::nullopt;
  return std::string(std::strerror(errno));
}

Result<File> open_file(const std::filesystem::path& path, int flags, unsigned mode, ExitCode code) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (descriptor < 0) {
    return Failure{code, format("cannot open '{}': {}", path.string(), std::strerror(errno))};
  }
  return File::adopt(descriptor);
}

void write_at(const File& file, std::span<const std::byte> bytes, std::size_t offset,
              const std::filesystem::path& path, ExitCode code) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(code, format("cannot write '{}'", path.string()), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
}

void read_at(const File& file, std::span<std::byte> bytes, std::size_t offset,
             const std::filesystem::path& path, ExitCode code) {
  while (!bytes.empty()) {
    const auto count = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(code, format("cannot read '{}'", path.string()), errno);
    if (count == 0) {
      throw Error(code, format("'{}' ends at byte {}, {} bytes too early", path.string(), offset,
                               bytes.size()));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
}

Result<std::string> read_text_file(const std::filesystem::path& path, ExitCode code,
                                   std::size_t max_bytes) {
  auto file = open_file(path, O_RDONLY, 0, code);
  if (!file) return file.failure();
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0) {
    return Failure{code, format("cannot examine '{}': {}", path.string(), std::strerror(errno))};
  }
  if (S_ISDIR(facts.st_mode)) {
    return Failure{code, format("'{}' is a folder; a file is needed here", path.string())};
  }
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  for (;;) {
    const auto count = ::read(file->get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Failure{code, format("cannot read '{}': {}", path.string(), std::strerror(errno))};
    }
    if (count == 0) return text;
    text.append(block, 0, static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      return Failure{code, format("'{}' is larger than {} (no file of this kind is)", path.string(),
                                  bytes_text(max_bytes))};
    }
  }
}

bool lacks_folder_sync(int error_number) {
  return error_number == EINVAL || error_number == ENOTSUP || error_number == ENOSYS;
}

void sync_folder(const std::filesystem::path& folder, ExitCode code) {
  const auto shown = folder.empty() ? std::filesystem::path(".") : folder;
  auto opened = value_or_throw(open_file(shown, O_RDONLY | O_DIRECTORY, 0, code));
  if (::fsync(opened.get()) != 0 && !lacks_folder_sync(errno)) {
    throw_errno(code, format("cannot sync folder '{}'", shown.string()), errno);
  }
  success_or_throw(opened.close());
}

std::vector<std::filesystem::path> make_folders(const std::filesystem::path& folder,
                                                std::error_code& error) {
  namespace fs = std::filesystem;
  std::vector<fs::path> changed;
  auto level = fs::absolute(folder, error).lexically_normal();
  if (!level.has_filename()) level = level.parent_path();
  while (!error && level.has_relative_path() && !fs::exists(level, error)) {
    level = level.parent_path();
    if (::access(level.c_str(), R_OK) == 0 || errno == ENOENT) changed.push_back(level);
  }
  if (!error) fs::create_directories(folder, error);
  std::reverse(changed.begin(), changed.end());
  return changed;
}

Status make_folders_durably(const std::filesystem::path& folder, ExitCode code) {
  std::error_code error;
  const auto changed = make_folders(folder, error);
  if (error) {
    return Failure{code, format("cannot make '{}': {}", folder.string(), error.message())};
  }
  try {
    for (const auto& parent : changed) sync_folder(parent, code);
  } catch (const Error& failed) {
    return Failure{failed.code(), failed.what()};
  }
  return {};
}

namespace {

void write_and_sync(const std::filesystem::path& path, std::string_view text, ExitCode code) {
  auto file = value_or_throw(open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644, code));
  write_at(file, std::as_bytes(std::span(text.data(), text.size())), 0, path, code);
  if (::fsync(file.get()) != 0) {
    throw_errno(code, format("cannot sync '{}'", path.string()), errno);
  }
  success_or_throw(file.close());
}

}  // namespace

void write_file_durably(const std::filesystem::path& path, std::string_view text, ExitCode code) {
  auto temporary = path;
  temporary += format(".tmp-{}", ::getpid());
  try {
    write_and_sync(temporary, text, code);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_errno(code, format("cannot rename '{}' to '{}'", temporary.string(), path.string()),
                  errno);
    }
  } catch (const Error&) {
    // A full disk would stay full.
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path(), code);
}

}  // namespace trireme::base
