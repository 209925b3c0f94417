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

}  // namespace trireme::launch
