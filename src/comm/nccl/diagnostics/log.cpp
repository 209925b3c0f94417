// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/comm/nccl_log.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace trireme::comm {
namespace {

constexpr const char* level_variable = "NCCL_DEBUG";
constexpr const char* parts_variable = "NCCL_DEBUG_SUBSYS";
constexpr const char* file_variable = "NCCL_DEBUG_FILE";

std::string upper(std::string text) {
  for (auto& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

/// True if a list such as "INIT,NET" or "^COLL" includes the lines of NCCL's start.
bool takes_start(const std::string& list) {
  const auto names = upper(list);
  const bool excludes = names.starts_with('^');
  bool named = false;
  for (std::string_view rest = std::string_view(names).substr(excludes ? 1 : 0); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto name = rest.substr(0, comma);
    named = named || name == "INIT" || name == "ALL";
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return named != excludes;
}

/// NCCL's %h is the host's name up to its first dot, %p the process.
std::string expanded(const std::string& pattern) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string_view name(host.data());
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    const char kind = pattern[++i];
    if (kind == 'h') {
      path += name.substr(0, name.find('.'));
    } else if (kind == 'p') {
      path += base::format("{}", ::getpid());
    } else {
      if (kind != '%') path += '%';
      path += kind;
    }
  }
  return path;
}

/// File in memory that NCCL can open by a name.
base::File file_in_memory() {
  const int descriptor = ::memfd_create("nccl-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return descriptor < 0 ? base::File() : base::File::adopt(descriptor);
}

std::string name_of(const base::File& memory) {
  return base::format("/proc/self/fd/{}", memory.get());
}

bool can_be_opened(const std::string& name) {
  return base::open_file(name, O_WRONLY | O_CLOEXEC).ok();
}

void set(const char* variable, const std::string& value) {
  // Safe: no other thread reads the environment yet.
  ::setenv(variable, value.c_str(), 1);
}

}  // namespace

NcclLog::NcclLog(const base::Environment& environment) {
  const auto level = upper(environment.get(level_variable).value_or(""));
  const auto parts = environment.get(parts_variable);
  const auto file = environment.get(file_variable);
  const bool modest = level.empty() || level == "VERSION" || level == "WARN";
  if (modest && !parts && !file) {
    memory_ = file_in_memory();
    if (memory_.get() < 0 || !can_be_opened(name_of(memory_))) {
      obstacle_ = "there is no memory file or no /proc for NCCL's log";
      return;
    }
    set(level_variable, "INFO");
    set(parts_variable, "INIT,NET");
    set(file_variable, name_of(memory_));
    return;
  }
  if ((level == "INFO" || level == "TRACE") && file && (!parts || takes_start(*parts))) {
    path_ = expanded(*file);
    return;
  }
  obstacle_ = base::format(
      "NCCL's log is yours ({}={}) and goes where it cannot be read or has no lines of its start",
      level_variable, environment.get(level_variable).value_or(""));
}

base::Result<std::string> NcclLog::text() const {
  const auto failure = [](const std::string& problem) {
    return base::Failure{
        base::ExitCode::topology,
        base::format(
            "{} (it alone says what carries data); unset NCCL_DEBUG, NCCL_DEBUG_SUBSYS and "
            "NCCL_DEBUG_FILE, or set NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,NET and "
            "NCCL_DEBUG_FILE to a file for each process (%h.%p)",
            problem)};
  };
  if (!obstacle_.empty()) return failure(obstacle_);
  auto opened = memory_.get() >= 0 ? base::open_file(name_of(memory_), O_RDONLY | O_CLOEXEC)
                                   : base::open_file(path_, O_RDONLY | O_CLOEXEC);
  if (!opened.ok()) return failure(opened.failure().text);
  struct stat status {};
  if (::fstat(opened->get(), &status) != 0) return failure("NCCL's log cannot be read");
  const auto bytes = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  if (memory_.get() >= 0 && bytes >= most_bytes) ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_GROW);
  std::string text(std::min(bytes, most_bytes), '\0');
  base::read_at(*opened, std::as_writable_bytes(std::span(text)), 0, "NCCL's log",
                base::ExitCode::topology);
  return text;
}

}  // namespace trireme::comm
