// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Tasks, nodes and GPUs that a command line of Slurm requests. SPANK gives a plugin no access to
/// them before the job exists, so the options are parsed as srun, sbatch and salloc parse them.
namespace trireme::launch {

enum class Command { srun, sbatch, salloc };
const char* name(Command command);

/// Requested resources; none where not given, or where the value leaves it open (--nodes=2-4).
struct ResourceRequest {
  Command command = Command::srun;
  std::optional<int> nodes;
  std::optional<int> tasks;
  std::optional<int> tasks_per_node;
  std::optional<int> gpus;
  std::optional<int> gpus_per_node;
  std::optional<int> gpus_per_task;
  std::optional<int> tasks_per_gpu;
  std::optional<int> cpus_per_task;
  std::optional<int> time_limit_seconds;
  /// Memory by --mem, --mem-per-cpu, --mem-per-gpu in MiB; they exclude each other, and the last
  /// one given counts. None for "0", all memory of a node.
  std::optional<std::int64_t> node_memory;
  std::optional<std::int64_t> cpu_memory;
  std::optional<std::int64_t> gpu_memory;
  /// --mpi, --distribution, --gpu-bind as they were written; empty where they were not.
  std::string mpi;
  std::string distribution;
  std::string gpu_bind;
  bool no_kill = false;
  bool kill_on_bad_exit = false;
  /// srun ends all tasks some time after the first has ended.
  bool waits = false;
  bool quiet = false;
  bool overlap = false;
  /// srun that starts a step of a job that exists.
  bool in_allocation = false;
  /// Two or more components of a heterogeneous job: no numbers are known for all of it.
  bool heterogeneous = false;
  /// False after a word that could be an option's value or the command (options of other plugins):
  /// the words behind it were not parsed.
  bool complete = true;
  /// First word that is no option: the command, or sbatch's script.
  std::string program;
};

/// Number of tasks that will start: as requested, or as Slurm derives it; none where neither is
/// known.
std::optional<int> task_count(const ResourceRequest& request);
/// Number of tasks on one node, where all nodes have as many.
std::optional<int> tasks_on_a_node(const ResourceRequest& request);
std::optional<int> gpus_on_a_node(const ResourceRequest& request);
/// MiB of memory that one task has before Slurm kills its step, on the average of its node.
std::optional<std::int64_t> memory_of_a_task(const ResourceRequest& request);

/// Words of the batch script that stand in its #SBATCH lines, before its first command.
std::vector<std::string> batch_words(std::string_view script);

/// The environment first, then the words of the script's #SBATCH lines, then the command line
/// (without the command's own name): the later wins.
ResourceRequest read_resource_request(Command command, const base::Environment& environment,
                                      std::span<const std::string> script_words,
                                      std::span<const std::string> arguments);

/// Seconds of Slurm's times: "90", "1:30", "1:30:00", "2-12", "2-12:30", "2-12:30:00" (the first
/// is minutes); none for UNLIMITED and for what is no time.
std::optional<int> parse_slurm_time(std::string_view text);

/// MiB of Slurm's sizes: "4096", "4G", "512K" (rounded up); none for what is no size.
std::optional<std::int64_t> parse_slurm_memory(std::string_view text);

}  // namespace trireme::launch
