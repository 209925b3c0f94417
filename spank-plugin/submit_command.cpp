// SPDX-License-Identifier: Apache-2.0
#include "submit_command.hpp"

#include "trireme/base/file.hpp"
#include "trireme/launch/system_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace trireme::spank {
namespace {

constexpr std::size_t longest_file = std::size_t{1} << 20;

/// Up to a mebibyte of a regular file, from its beginning; empty for all else.
std::string contents(const base::File& file) {
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  std::string text(std::min(longest_file, static_cast<std::size_t>(facts.st_size)), '\0');
  // Size of files in /proc is reported as 0.
  if (text.empty()) text.resize(longest_file);
  std::size_t length = 0;
  while (length < text.size()) {
    const auto count =
        ::pread(file.get(), text.data() + length, text.size() - length, static_cast<off_t>(length));
    if (count <= 0) break;
    length += static_cast<std::size_t>(count);
  }
  text.resize(length);
  return text;
}

std::string contents_of(const std::string& path) {
  // A pipe in place of a file must not stop the command.
  const auto file =
      base::File::adopt(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  return contents(file);
}

}  // namespace

launch::Command allocating_command() {
  return std::string_view(program_invocation_short_name).find("salloc") != std::string_view::npos
             ? launch::Command::salloc
             : launch::Command::sbatch;
}

std::vector<std::string> command_arguments() {
  const auto text = contents_of("/proc/self/cmdline");
  std::vector<std::string> words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\0');
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

std::string batch_script(const std::string& program, const std::vector<std::string>& arguments) {
  const bool wraps = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word.starts_with("--wrap");
  });
  if (wraps) return {};
  if (!program.empty()) return contents_of(program);
  const auto input = base::File::adopt(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  return contents(input);
}

std::string default_mpi(const std::string& slurm_conf) {
  const std::vector<std::string> places{slurm_conf, "/etc/slurm/slurm.conf",
                                        "/run/slurm/conf/slurm.conf"};
  for (const auto& place : places) {
    if (place.empty()) continue;
    const auto text = contents_of(place);
    if (!text.empty()) return launch::default_mpi_in(text);
  }
  return {};
}

}  // namespace trireme::spank
