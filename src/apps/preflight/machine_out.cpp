// SPDX-License-Identifier: Apache-2.0
#include "apps/preflight/machine_out.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>

namespace trireme::apps {

base::Status check_machine_out(const std::filesystem::path& out) {
  std::error_code problem;
  if (std::filesystem::exists(out, problem)) {
    return base::usage_failure(
        base::format("--machine-out {} is there (a machine file may be somebody's work); name "
                     "another, or remove it",
                     base::printable(out.string())));
  }
  const auto folder = out.has_parent_path() ? out.parent_path() : std::filesystem::path(".");
  if (std::filesystem::is_directory(folder, problem) &&
      ::access(folder.c_str(), W_OK | X_OK) == 0) {
    return {};
  }
  return base::usage_failure(
      base::format("--machine-out {} cannot be written ('{}' is no folder that this user may write "
                   "to); name another",
                   base::printable(out.string()), base::printable(folder.string())));
}

void write_machine(const predict::Machine& machine, std::string_view heading,
                   const std::filesystem::path& out) {
  constexpr auto code = base::ExitCode::usage;
  const auto text = predict::machine_text(machine, heading);
  // Made here and not renamed to: what somebody has made since the check is not written over.
  auto opened = base::open_file(out, O_WRONLY | O_CREAT | O_EXCL, 0644, code);
  if (!opened) {
    base::success_or_throw(check_machine_out(out));
    throw base::Error(opened.failure());
  }
  try {
    base::write_at(*opened, std::as_bytes(std::span(text)), 0, out, code);
    if (::fsync(opened->get()) != 0) {
      base::throw_errno(code, base::format("cannot sync '{}'", out.string()), errno);
    }
    base::success_or_throw(opened->close());
  } catch (const base::Error&) {
    ::unlink(out.c_str());
    throw;
  }
  base::sync_folder(out.parent_path(), code);
}

}  // namespace trireme::apps
