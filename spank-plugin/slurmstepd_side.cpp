// SPDX-License-Identifier: Apache-2.0
#include "slurmstepd_side.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/system_text.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace trireme::spank {
namespace {

using base::format;

/// A job that starts steps without end shall not fill the node.
constexpr off_t largest_record = off_t{1} << 20;

template <typename Number>
Number item(spank_t spank, spank_item_t which) {
  Number number{};
  return spank_get_item(spank, which, &number) == ESPANK_SUCCESS ? number : Number{};
}

/// Number of times that the job was requeued. Slurm gives it to slurmstepd only for batch scripts;
/// steps find it in their environment.
std::uint32_t restarts(spank_t spank) {
  char text[16] = {};
  if (spank_getenv(spank, "SLURM_RESTART_COUNT", text, sizeof text) != ESPANK_SUCCESS) {
    return item<std::uint32_t>(spank, S_SLURM_RESTART_COUNT);
  }
  std::uint32_t count = 0;
  std::from_chars(text, text + ::strnlen(text, sizeof text), count);
  return count;
}

std::string system_text(const std::string& path) {
  const auto file = base::File::adopt(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return {};
  std::string text(std::size_t{64} << 10, '\0');
  const auto count = ::read(file.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// Kills in the step's cgroup. In cgroup v1 each cgroup counts its own alone, and tasks have theirs
/// below the step's.
std::optional<std::int64_t> kills_of_step() {
  const auto counter = launch::kill_counter_in(system_text("/proc/self/cgroup"));
  if (!counter) return std::nullopt;
  auto kills = record::memory_kills_in(system_text(*counter));
  const std::filesystem::path path(*counter);
  if (!kills || path.filename() != "memory.oom_control") return kills;
  std::error_code error;
  std::filesystem::directory_iterator entries(path.parent_path(), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const auto inner = entries->path() / path.filename();
    *kills += record::memory_kills_in(system_text(inner.string())).value_or(0);
  }
  return kills;
}

void set_limit(int resource, PlugstackOptions::Limit wanted, const char* name) {
  if (wanted == PlugstackOptions::Limit::keep) return;
  const rlim_t value = wanted == PlugstackOptions::Limit::none ? 0 : RLIM_INFINITY;
  const rlimit limit{value, value};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    // Not reported to the user; the site sees it with SlurmdDebug=verbose.
    slurm_verbose("trireme: the limit %s stays as it is: %s", name, std::strerror(errno));
  }
}

/// Raises the soft limit to the hard one. Slurm would set the submitting shell's soft limit after
/// the last callback; it reads that limit from a variable of the task, which is unset here.
void raise_soft_limit(spank_t spank, int resource, PlugstackOptions::Limit wanted,
                      const char* variable) {
  if (wanted == PlugstackOptions::Limit::keep) return;
  spank_unsetenv(spank, variable);
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

}  // namespace

SlurmstepdSide::SlurmstepdSide(const PlugstackOptions& options, launch::Contract contract,
                               spank_t spank)
    : options_(options), contract_(std::move(contract)) {
  if (!contract_.active()) return;
  step_.job = item<std::uint32_t>(spank, S_JOB_ID);
  step_.step = item<std::uint32_t>(spank, S_JOB_STEPID);
  step_.restart = restarts(spank);
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) == 0) step_.node = host;
  open_folders(spank);
  kills_at_start_ = memory_kills();
}

void SlurmstepdSide::open_folders(spank_t spank) {
  const Owner owner{item<uid_t>(spank, S_JOB_UID), item<gid_t>(spank, S_JOB_GID)};
  user_ = {owner, {}};
  gid_t* groups = nullptr;
  int count = 0;
  if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) == ESPANK_SUCCESS) {
    user_.groups.assign(groups, groups + count);
  }
  const auto base = open_base(options_.base);
  if (!base) {
    slurm_error("trireme: %s", base.failure().text.c_str());
    return;
  }
  const auto name = format("{}", step_.job);
  if (const auto made = make_job_folder(*base, name, owner)) {
    folder_ = format("{}/jobs/{}", options_.base, name);
  } else {
    slurm_error("trireme: %s", made.failure().text.c_str());
  }
  auto record = open_record(*base, name, owner.group);
  if (!record) {
    slurm_error("trireme: %s", record.failure().text.c_str());
    return;
  }
  record_ = *std::move(record);
  record_path_ = format("{}/records/{}.jsonl", options_.base, name);
}

record::MemoryKills SlurmstepdSide::memory_kills() const {
  return {kills_of_step(), record::memory_kills_in(system_text("/proc/vmstat"))};
}

void SlurmstepdSide::raise_hard_limits() const {
  if (!contract_.active()) return;
  set_limit(RLIMIT_MEMLOCK, options_.memlock, "memlock");
  set_limit(RLIMIT_CORE, options_.core, "core");
}

void SlurmstepdSide::prepare_task(spank_t spank) const {
  const auto set = [&](std::string_view name, const std::string& value) {
    const std::string variable(name);
    if (value.empty()) {
      spank_unsetenv(spank, variable.c_str());
    } else {
      spank_setenv(spank, variable.c_str(), value.c_str(), 1);
    }
  };
  auto variables = launch::variables(contract_);
  for (const auto& option : launch::options())
    set(option.variable, variables[std::string(option.variable)]);
  if (!contract_.active()) return;
  raise_soft_limit(spank, RLIMIT_MEMLOCK, options_.memlock, "SLURM_RLIMIT_MEMLOCK");
  raise_soft_limit(spank, RLIMIT_CORE, options_.core, "SLURM_RLIMIT_CORE");
  char node[HOST_NAME_MAX + 1] = {};
  const bool named = spank_getenv(spank, "SLURMD_NODENAME", node, sizeof node) == ESPANK_SUCCESS;
  set(launch::node_variable, named ? node : step_.node);
  set(launch::version_variable, format("{}", launch::contract_version));
  set(launch::encoded_variable, launch::encode(contract_));
  set(launch::directory_variable, folder_);
  set(launch::record_variable, record_path_);
}

void SlurmstepdSide::record_task(spank_t spank) const {
  struct stat facts {};
  if (!record_ || ::fstat(record_.get(), &facts) != 0 || facts.st_size > largest_record) return;
  auto record = step_;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  record.time_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  record.rank = item<std::uint32_t>(spank, S_TASK_GLOBAL_ID);
  record.local_rank = static_cast<std::uint32_t>(item<int>(spank, S_TASK_ID));
  record.process = item<pid_t>(spank, S_TASK_PID);
  record.wait_status = item<int>(spank, S_TASK_EXIT_STATUS) & 0xFFFF;
  record.out_of_memory =
      record::detect_out_of_memory(record.wait_status, kills_at_start_, memory_kills());
  const auto line = record::record_line(record) + "\n";
  // Single write in append mode: lines of several steps do not mix.
  if (::write(record_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    slurm_error("trireme: the record %s takes no line: %s", record_path_.c_str(),
                std::strerror(errno));
  }
  if (folder_.empty()) return;
  append_as_user(
      user_, format("{}/{}/tasks.{}.jsonl", folder_, record::records_link(step_.step), record.node),
      line);
}

}  // namespace trireme::spank
