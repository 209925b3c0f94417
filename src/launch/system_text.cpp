// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/system_text.hpp"

#include "text.hpp"

#include <algorithm>
#include <cctype>

namespace trireme::launch {
namespace {

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return small;
}

/// Path in the kernel's notation: blanks and backslashes as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  const auto octal = [](char letter) { return letter >= '0' && letter <= '7'; };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digits = text.substr(at + 1, 3);
    if (text[at] == '\\' && digits.size() == 3 &&
        std::all_of(digits.begin(), digits.end(), octal)) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace

std::string default_mpi_in(std::string_view slurm_conf) {
  bool includes = false;
  for (const auto part : split(slurm_conf, '\n')) {
    const auto line = lower(trimmed(part));
    constexpr std::string_view key = "mpidefault=";
    if (line.starts_with(key)) {
      return line.substr(key.size(), line.find_first_of(" \t\r#", key.size()) - key.size());
    }
    includes = includes || line.starts_with("include ");
  }
  return includes ? "" : "none";
}

std::optional<std::string> kill_counter_in(std::string_view cgroups) {
  for (const auto line : split(cgroups, '\n')) {
    const auto path_at = line.find(":/");
    const auto step_at = line.find("/step_");
    if (path_at == std::string_view::npos || step_at == std::string_view::npos) continue;
    if (step_at <= path_at) continue;
    const auto step_end = line.find('/', step_at + 1);
    const auto length =
        step_end == std::string_view::npos ? std::string_view::npos : step_end - path_at - 1;
    const std::string step(line.substr(path_at + 1, length));
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + step + "/memory.events";
    if (line.find(":memory:") != std::string_view::npos) {
      return "/sys/fs/cgroup/memory" + step + "/memory.oom_control";
    }
  }
  return std::nullopt;
}

std::optional<std::string> mount_source_in(std::string_view mounts, std::string_view path) {
  std::optional<std::string> found;
  for (const auto line : split(mounts, '\n')) {
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS
    const auto words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 3) continue;
    if (unescaped(words[4]) == path) found = unescaped(dash[2]);
  }
  return found;
}

}  // namespace trireme::launch
