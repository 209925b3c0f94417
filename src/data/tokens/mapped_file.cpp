// SPDX-License-Identifier: Apache-2.0
#include "data/tokens/mapped_file.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>

namespace trireme::data {
namespace {

/// Mapping that a thread reads, and the jump target for a page that cannot be read.
struct Guarded {
  const std::byte* begin;
  const std::byte* end;
  std::size_t offset;
  sigjmp_buf way_out;
};

thread_local Guarded* guarded = nullptr;
struct sigaction former {};

/// Passes a signal that is not ours to the former handler, or restores it: the instruction then
/// fails again.
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  } else {
    ::sigaction(signal, &former, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

void leave_page(int signal, siginfo_t* info, void* context) {
  const auto* const address = static_cast<const std::byte*>(info->si_addr);
  // si_code above 0: sent by the system, for an access to the address.
  if (info->si_code <= 0 || guarded == nullptr || address < guarded->begin ||
      address >= guarded->end) {
    pass_on(signal, info, context);
    return;
  }
  guarded->offset = static_cast<std::size_t>(address - guarded->begin);
  // Safe jump: it leaves only a copy, as guard() requires. The signal is not blocked here.
  ::siglongjmp(guarded->way_out, 1);  // NOLINT(cert-err52-cpp)
}

/// Installs the handler once in a process, as late as possible: earlier handlers are kept.
void watch_pages() {
  static const int watched = [] {
    struct sigaction action {};
    action.sa_sigaction = leave_page;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &former);
  }();
  static_cast<void>(watched);
}

/// Ends a guarded read, however it ends.
struct Unguard {
  Unguard() = default;
  Unguard(const Unguard&) = delete;
  Unguard& operator=(const Unguard&) = delete;
  ~Unguard() { guarded = nullptr; }
};

std::string reason(const std::filesystem::path& path, std::size_t mapped, std::size_t offset) {
  std::error_code error;
  const auto now = std::filesystem::file_size(path, error);
  if (error) return error.message();
  if (now <= offset) return base::format("it was cut from {} to {} bytes", mapped, now);
  return "its storage failed";
}

}  // namespace

std::optional<std::string> MappingTraits::close(const Mapping& mapping) {
  if (::munmap(mapping.address, mapping.length) == 0) return std::nullopt;
  return std::string(std::strerror(errno));
}

base::Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  constexpr auto code = base::ExitCode::checkpoint;
  const auto file = base::open_file(path, O_RDONLY, 0, code);
  if (!file) return file.failure();
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0) {
    return base::Failure{
        code, base::format("cannot examine '{}': {}", path.string(), std::strerror(errno))};
  }
  if (!S_ISREG(facts.st_mode)) {
    return base::Failure{
        code, base::format("'{}' is not a plain file (tokens are memory-mapped); name the "
                           "prefix of a token file",
                           path.string())};
  }
  MappedFile mapped;
  if (facts.st_size == 0) return mapped;
  const auto length = static_cast<std::size_t>(facts.st_size);
  void* address = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file->get(), 0);
  if (address == MAP_FAILED) {
    return base::Failure{code,
                         base::format("cannot map '{}': {}", path.string(), std::strerror(errno))};
  }
  mapped.mapping_ = base::UniqueHandle<MappingTraits>::adopt({address, length});
  mapped.path_ = path;
  return mapped;
}

void MappedFile::guard(const std::function<void()>& reads) const {
  watch_pages();
  const auto all = bytes();
  Guarded place{all.data(), all.data() + all.size(), 0, {}};
  const Unguard unguard;
  guarded = &place;
  // Without signal masks: saving them takes a system call each time, which would cost more than the
  // copy.
  if (sigsetjmp(place.way_out, 0) == 0) {  // NOLINT(cert-err52-cpp)
    reads();
    return;
  }
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' cannot be read any more at byte {}: {} (token files are read "
                   "as long as a run lasts); restore it and start again",
                   path_.string(), place.offset, reason(path_, all.size(), place.offset)));
}

}  // namespace trireme::data
