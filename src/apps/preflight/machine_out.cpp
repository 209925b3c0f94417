// SPDX-License-Identifier: Apache-2.0
#include "apps/preflight/machine_out.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <unistd.h>

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
  base::write_file_durably(out, predict::machine_text(machine, heading), base::ExitCode::usage);
}

}  // namespace trireme::apps
