// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/load/stored_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace trireme::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

/// Failure of a system call that may be retried.
struct Refusal {
  const char* doing;
  int error_number;
};

/// Errors that may be temporary: servers that fail over, paths that recover, limits that others
/// exhaust.
bool may_pass(int error_number) {
  switch (error_number) {
    case EIO:
    case ESTALE:
    case EMFILE:
    case ENFILE:
    case ETIMEDOUT:
    case EAGAIN:
    case ENOMEM:
    case ENOTCONN:
      return true;
    default:
      return false;
  }
}

constexpr std::string_view may_be_good =
    "(the step may be good: nothing is known to be wrong with it); start again when the storage "
    "answers, or move the step's folder away to use the step before";

[[noreturn]] void give_up(const Refusal& refusal, const std::filesystem::path& path,
                          double seconds) {
  const auto what = base::format("cannot {} '{}': {}", refusal.doing, path.string(),
                                 std::strerror(refusal.error_number));
  if (!may_pass(refusal.error_number)) throw base::Error(base::ExitCode::checkpoint, what);
  throw UnreadableError(
      base::ExitCode::checkpoint,
      base::format("{}, tried for {} {}", what, base::duration_text(seconds), may_be_good));
}

/// Calls `attempt(number)` until it throws no Refusal that may be temporary.
template <typename Attempt>
void insist(const std::filesystem::path& path, std::chrono::milliseconds patience,
            Attempt&& attempt) {
  const auto begin = Clock::now();
  auto pause = std::chrono::milliseconds(10);
  for (int number = 0;; ++number) {
    try {
      attempt(number);
      return;
    } catch (const Refusal& refusal) {
      const auto passed = Clock::now() - begin;
      if (!may_pass(refusal.error_number) || passed + pause > patience) {
        give_up(refusal, path, std::chrono::duration<double>(passed).count());
      }
      if (number == 0) {
        base::log::local::warning("checkpoint", "cannot {} '{}': {}; trying again", refusal.doing,
                                  path.string(), std::strerror(refusal.error_number));
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(1000));
  }
}

/// Calls `ask`, of an object store.
template <typename Ask>
auto answer_of(Ask&& ask) {
  try {
    return ask();
  } catch (const store::StoreError& refused) {
    if (!refused.may_pass()) throw;
    throw UnreadableError(base::ExitCode::checkpoint,
                          base::format("{} {}", refused.what(), may_be_good));
  }
}

}  // namespace

StoredBytes::StoredBytes(std::filesystem::path path, const ReadAccess& access)
    : path_(std::move(path)), access_(access) {
  if (store::is_url(path_)) {
    open_object();
    return;
  }
  insist(path_, access_.patience, [&](int) {
    file_ = open();
    struct stat facts {};
    if (::fstat(file_.get(), &facts) != 0) throw Refusal{"examine", errno};
    is_regular_ = S_ISREG(facts.st_mode);
    size_ = static_cast<std::uint64_t>(facts.st_size);
  });
}

void StoredBytes::open_object() {
  object_ = store::locate(path_);
  const auto size = answer_of([this] { return object_.store->size(object_.name); });
  if (!size) {
    throw base::Error(base::ExitCode::checkpoint, no_object_text(path_.native()));
  }
  is_regular_ = true;
  size_ = *size;
}

void StoredBytes::read_object(std::span<std::byte> buffer, std::uint64_t offset) const {
  if (offset + buffer.size() > size_) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' ends at byte {}, {} bytes too early", path_.string(),
                                   size_, offset + buffer.size() - size_));
  }
  answer_of([&] {
    object_.store->read(object_.name, buffer, offset);
    return true;
  });
}

base::File StoredBytes::open() const {
  const int descriptor = access_.files->open(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (descriptor < 0) throw Refusal{"open", errno};
  return base::File::adopt(descriptor);
}

void StoredBytes::read(std::span<std::byte> buffer, std::uint64_t offset) const {
  if (object_.store) return read_object(buffer, offset);
  insist(path_, access_.patience, [&](int number) {
    // A stale descriptor stays stale.
    const auto fresh = number > 0 ? open() : base::File();
    const int descriptor = number > 0 ? fresh.get() : file_.get();
    while (!buffer.empty()) {
      const auto count = access_.files->read(descriptor, buffer, offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Refusal{"read", errno};
      if (count == 0) {
        throw base::Error(base::ExitCode::checkpoint,
                          base::format("'{}' ends at byte {}, {} bytes too early", path_.string(),
                                       offset, buffer.size()));
      }
      buffer = buffer.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  });
}

void StoredBytes::open_directly() {
  if (object_.store) return;
  const int descriptor = access_.files->open(path_, O_RDONLY | O_NOFOLLOW | O_DIRECT, 0);
  // A failure is told by the usual way.
  if (descriptor >= 0) direct_ = base::File::adopt(descriptor);
}

void StoredBytes::read_directly(std::span<std::byte> buffer, std::uint64_t offset,
                                std::size_t needed) const {
  std::size_t done = 0;
  while (direct_ && done < needed && done % OutputFile::direct_alignment == 0) {
    const auto count = access_.files->read(direct_.get(), buffer.subspan(done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  if (done < needed) read(buffer.subspan(done, needed - done), offset + done);
}

}  // namespace trireme::checkpoint
