// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Processor time of a node, as its kernel counts it: what its cores did, of this process and of
/// all, and what limits of cgroups took.
namespace trireme::telemetry {

/// Clock ticks of a core (a hardware thread) since the node has started.
struct CoreTicks {
  std::uint64_t busy = 0;  ///< for processes
  std::uint64_t interrupts = 0;
  std::uint64_t stolen = 0;  ///< that the hypervisor gave to other virtual machines
  std::uint64_t idle = 0;    ///< with waits for storage
};

/// By core, from the text of /proc/stat (proc(5)); empty where the kernel counts none.
std::map<int, CoreTicks> core_ticks_in(std::string_view proc_stat);

/// Numbers of a list of cores, "0-3,8" (cpuset(7)); empty of any other text.
std::vector<int> core_numbers(std::string_view list);

/// Files that may tell what limits took from a process, the innermost first, from the text of its
/// /proc/PID/cgroup: cpu.stat of its cgroup and of those around it. Of the first version of cgroups
/// they lie where each system has them or a link: the name of the folder with two controllers in it
/// has them in another order than the text, with some kernels.
std::vector<std::filesystem::path> limit_files_in(std::string_view cgroups);

/// Time that a limit took, from the text of a cpu.stat of either version of cgroups, summed over
/// cores; nothing where there is no limit.
std::optional<std::chrono::microseconds> throttled_in(std::string_view cpu_stat);

/// Shares of an interval.
struct CoreShare {
  double busy = 0;
  double stolen = 0;
  double interrupts = 0;
};

/// Measurements of a rank over an interval.
struct ProcessorShares {
  double seconds = 0;
  /// Cores that this process has used, with all its threads: 1.5 is one and a half.
  double own = 0;
  /// Cores of the node, on the rank that reads them.
  std::map<int, CoreShare> cores = {};
  /// Cores that the limit which took most has taken from the node's ranks: their threads would
  /// have run there.
  double throttled = 0;
};

/// Counters of the kernel at one time.
struct ProcessorCounters {
  std::chrono::steady_clock::time_point time;
  double own_seconds = 0;
  std::map<int, CoreTicks> cores = {};
  /// Time that each limit took, by its file. Groups within each other count only what their own
  /// took.
  std::map<std::filesystem::path, std::chrono::microseconds> throttled = {};
};

/// Shares of the interval between two readings, which is longer than nothing.
ProcessorShares shares_between(const ProcessorCounters& earlier, const ProcessorCounters& later);

/// Reads counters at the begin and the end of an interval: of the process by a system call, of the
/// node by a file and one for each limit.
class ProcessorMeter {
 public:
  enum class Reads { own, node_too };
  explicit ProcessorMeter(Reads reads) : reads_(reads) {}

  void begin();
  /// Shares since the begin, from which the next interval begins; nothing of less than a second, in
  /// which ticks are too few, and before begin().
  std::optional<ProcessorShares> take();

 private:
  ProcessorCounters read() const;

  Reads reads_;
  std::optional<ProcessorCounters> begin_ = std::nullopt;
  /// Files of limits; a group may get one later.
  std::vector<std::filesystem::path> limits_ = {};
};

/// The shares as a few bytes: three words, and two for each core.
std::string packed(const ProcessorShares& shares);
/// Reads such bytes; empty shares from any others.
ProcessorShares unpacked(std::string_view bytes);

}  // namespace trireme::telemetry
