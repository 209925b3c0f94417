// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/resource_request.hpp"

#include "slurm_options.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>

namespace trireme::launch {
namespace {

/// "4", "4-4"; a range leaves it open.
std::optional<int> exact_count(std::string_view text) {
  const auto dash = text.find('-');
  const auto low = parse_number(text.substr(0, dash));
  if (dash == std::string_view::npos) return low;
  return parse_number(text.substr(dash + 1)) == low ? low : std::nullopt;
}

/// "4", "a100:4"; several types are added up.
std::optional<int> gpu_count(std::string_view text) {
  std::int64_t sum = 0;
  for (const auto part : split(text, ',')) {
    const auto number = parse_number(part.substr(part.rfind(':') + 1));
    if (!number) return std::nullopt;
    sum += *number;
  }
  if (text.empty() || sum > 1 << 20) return std::nullopt;
  return static_cast<int>(sum);
}

/// GPUs of --gres=gpu:a100:4,nvme:1.
std::optional<int> gres_gpus(std::string_view text) {
  std::optional<int> sum;
  for (auto part : split(text, ',')) {
    if (part.starts_with("gres/")) part.remove_prefix(5);
    if (part == "gpu") sum = sum.value_or(0) + 1;
    if (!part.starts_with("gpu:")) continue;
    const auto count = gpu_count(part.substr(0, part.find('(')));
    if (count) sum = sum.value_or(0) + *count;
  }
  return sum;
}

void apply_memory(ResourceRequest& request, std::string_view option, std::string_view value) {
  if (option != "mem" && option != "mem-per-cpu" && option != "mem-per-gpu") return;
  auto size = parse_slurm_memory(value);
  if (size == 0) size.reset();
  request.node_memory = option == "mem" ? size : std::nullopt;
  request.cpu_memory = option == "mem-per-cpu" ? size : std::nullopt;
  request.gpu_memory = option == "mem-per-gpu" ? size : std::nullopt;
}

void apply(ResourceRequest& request, std::string_view option, const std::string& value) {
  apply_memory(request, option, value);
  if (option == "nodes") request.nodes = exact_count(value);
  if (option == "ntasks") request.tasks = parse_number(value);
  if (option == "ntasks-per-node") request.tasks_per_node = parse_number(value);
  if (option == "ntasks-per-gpu") request.tasks_per_gpu = parse_number(value);
  if (option == "gpus") request.gpus = gpu_count(value);
  if (option == "gpus-per-node") request.gpus_per_node = gpu_count(value);
  if (option == "gpus-per-task") request.gpus_per_task = gpu_count(value);
  if (option == "gres" || option == "tres-per-node") {
    if (const auto count = gres_gpus(value)) request.gpus_per_node = count;
  }
  if (option == "cpus-per-task") request.cpus_per_task = parse_number(value);
  if (option == "time") request.time_limit_seconds = parse_slurm_time(value);
  if (option == "mpi") request.mpi = value;
  if (option == "distribution") request.distribution = value;
  if (option == "gpu-bind" || option == "tres-bind") request.gpu_bind = value;
  if (option == "no-kill") request.no_kill = value != "off";
  if (option == "kill-on-bad-exit") request.kill_on_bad_exit = value != "0";
  if (option == "wait") request.waits = parse_number(value).value_or(0) > 0;
  if (option == "quiet") request.quiet = true;
  if (option == "overlap") request.overlap = true;
  if (option == "jobid") request.in_allocation = true;
}

void apply_all(ResourceRequest& request, const OptionWords& words) {
  for (const auto& [name, value] : words.options) apply(request, name, value);
  request.complete = request.complete && words.complete;
  request.heterogeneous = request.heterogeneous || words.heterogeneous;
}

struct Variable {
  std::string_view name;
  std::string_view option;
};

/// Variables that describe the enclosing job. An srun outside of a job reads them as requests, too.
constexpr std::array srun_variables{Variable{"SLURM_NNODES", "nodes"},
                                    Variable{"SLURM_JOB_NUM_NODES", "nodes"},
                                    Variable{"SLURM_NPROCS", "ntasks"},
                                    Variable{"SLURM_NTASKS", "ntasks"},
                                    Variable{"SLURM_NTASKS_PER_NODE", "ntasks-per-node"},
                                    Variable{"SLURM_NTASKS_PER_GPU", "ntasks-per-gpu"},
                                    Variable{"SLURM_GPUS", "gpus"},
                                    Variable{"SLURM_GPUS_PER_NODE", "gpus-per-node"},
                                    Variable{"SLURM_GPUS_PER_TASK", "gpus-per-task"},
                                    Variable{"SLURM_GPU_BIND", "gpu-bind"},
                                    Variable{"SLURM_MPI_TYPE", "mpi"},
                                    Variable{"SLURM_DISTRIBUTION", "distribution"},
                                    Variable{"SLURM_NO_KILL", "no-kill"},
                                    Variable{"SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"},
                                    Variable{"SLURM_WAIT", "wait"},
                                    Variable{"SRUN_CPUS_PER_TASK", "cpus-per-task"},
                                    Variable{"SLURM_MEM_PER_NODE", "mem"},
                                    Variable{"SLURM_MEM_PER_CPU", "mem-per-cpu"},
                                    Variable{"SLURM_MEM_PER_GPU", "mem-per-gpu"},
                                    Variable{"SLURM_TIMELIMIT", "time"}};
/// Variables of sbatch and salloc, behind SBATCH or SALLOC.
constexpr std::array submission_variables{Variable{"_GPUS", "gpus"},
                                          Variable{"_GPUS_PER_NODE", "gpus-per-node"},
                                          Variable{"_GPUS_PER_TASK", "gpus-per-task"},
                                          Variable{"_GPU_BIND", "gpu-bind"},
                                          Variable{"_GRES", "gres"},
                                          Variable{"_DISTRIBUTION", "distribution"},
                                          Variable{"_NO_KILL", "no-kill"},
                                          Variable{"_MEM_PER_NODE", "mem"},
                                          Variable{"_MEM_PER_CPU", "mem-per-cpu"},
                                          Variable{"_MEM_PER_GPU", "mem-per-gpu"},
                                          Variable{"_TIMELIMIT", "time"}};

void apply_environment(ResourceRequest& request, Command command,
                       const base::Environment& environment) {
  const bool is_step = command == Command::srun;
  std::string prefix;
  if (!is_step) prefix = command == Command::sbatch ? "SBATCH" : "SALLOC";
  const std::span<const Variable> variables =
      is_step ? std::span<const Variable>(srun_variables) : submission_variables;
  for (const auto& [variable, option] : variables) {
    const auto value = environment.get(prefix + std::string(variable));
    if (value) apply(request, option, *value);
  }
}

std::optional<int> product(std::optional<int> a, std::optional<int> b) {
  if (!a || !b || std::int64_t{*a} * *b > 1 << 30) return std::nullopt;
  return *a * *b;
}

/// total / parts, where every part has as many.
std::optional<int> even_share(std::optional<int> total, std::optional<int> parts) {
  if (!total || !parts || *parts < 1 || *total % *parts != 0) return std::nullopt;
  return *total / *parts;
}

}  // namespace

const char* name(Command command) {
  switch (command) {
    case Command::srun:
      return "srun";
    case Command::sbatch:
      return "sbatch";
    case Command::salloc:
      return "salloc";
  }
  return "?";
}

ResourceRequest read_resource_request(Command command, const base::Environment& environment,
                                      std::span<const std::string> script_words,
                                      std::span<const std::string> arguments) {
  ResourceRequest request;
  request.command = command;
  apply_environment(request, command, environment);
  request.in_allocation = command == Command::srun && environment.has("SLURM_JOB_ID");
  const ResourceRequest job = request;
  apply_all(request, read_options(command, script_words));
  const auto words = read_options(command, arguments);
  const auto says = [&](std::string_view option) {
    return std::any_of(words.options.begin(), words.options.end(),
                       [&](const OptionWord& word) { return word.name == option; });
  };
  // A step of its own size does not keep the job's number of tasks, and the reverse.
  if (job.in_allocation && says("ntasks-per-node") && !says("ntasks")) request.tasks.reset();
  if (job.in_allocation && says("ntasks") && !says("ntasks-per-node")) {
    request.tasks_per_node.reset();
  }
  apply_all(request, words);
  request.program = words.program;
  if (environment.has("SLURM_HET_SIZE") && request.in_allocation) request.heterogeneous = true;
  return request;
}

std::optional<int> task_count(const ResourceRequest& request) {
  if (request.heterogeneous || !request.complete) return std::nullopt;
  if (request.tasks) return request.tasks;
  if (request.tasks_per_node) {
    return product(request.nodes ? request.nodes : std::optional<int>(1), request.tasks_per_node);
  }
  if (request.tasks_per_gpu) {
    const auto gpus = request.gpus ? request.gpus : product(request.nodes, request.gpus_per_node);
    return product(gpus, request.tasks_per_gpu);
  }
  if (request.gpus_per_task && request.gpus) {
    return even_share(request.gpus, request.gpus_per_task);
  }
  // srun starts one task a node; the scripts of sbatch and salloc may still set the number.
  if (request.command == Command::srun) return request.nodes.value_or(1);
  return std::nullopt;
}

std::optional<int> tasks_on_a_node(const ResourceRequest& request) {
  if (request.heterogeneous || !request.complete) return std::nullopt;
  const auto tasks = task_count(request);
  if (request.tasks_per_node) {
    return tasks ? std::min(*request.tasks_per_node, *tasks) : *request.tasks_per_node;
  }
  return even_share(tasks, request.nodes);
}

std::optional<int> gpus_on_a_node(const ResourceRequest& request) {
  if (request.heterogeneous || !request.complete) return std::nullopt;
  if (request.gpus_per_node) return request.gpus_per_node;
  if (const auto share = even_share(request.gpus, request.nodes)) return share;
  return product(tasks_on_a_node(request), request.gpus_per_task);
}

std::optional<std::int64_t> memory_of_a_task(const ResourceRequest& request) {
  const auto tasks = tasks_on_a_node(request);
  if (request.cpu_memory) return *request.cpu_memory * request.cpus_per_task.value_or(1);
  if (!tasks || *tasks < 1) return std::nullopt;
  if (request.node_memory) return *request.node_memory / *tasks;
  const auto gpus = gpus_on_a_node(request);
  if (!request.gpu_memory || !gpus) return std::nullopt;
  return *request.gpu_memory * *gpus / *tasks;
}

std::optional<int> parse_slurm_time(std::string_view text) {
  std::int64_t days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = parse_number(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::array<std::int64_t, 3> parts{};
  const auto words = split(text, ':');
  if (words.empty() || words.size() > parts.size()) return std::nullopt;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const auto number = parse_number(words[index]);
    if (!number) return std::nullopt;
    parts[index] = *number;
  }
  // Behind days the first part is hours; without them "a" and "a:b" begin with minutes.
  std::int64_t seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  if (dash == std::string_view::npos && words.size() < 3) seconds = parts[0] * 60 + parts[1];
  seconds += days * 86400;
  if (seconds > std::int64_t{1} << 30) return std::nullopt;
  return static_cast<int>(seconds);
}

std::optional<std::int64_t> parse_slurm_memory(std::string_view text) {
  constexpr std::string_view units = "KMGT";
  std::size_t unit = 1;
  if (text.ends_with('B') || text.ends_with('b')) text.remove_suffix(1);
  if (!text.empty() && (text.back() < '0' || text.back() > '9')) {
    unit = units.find(static_cast<char>(text.back() & ~0x20));
    if (unit == std::string_view::npos) return std::nullopt;
    text.remove_suffix(1);
  }
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  const std::int64_t size = *number;
  return unit == 0 ? (size + 1023) / 1024 : size << (10 * (unit - 1));
}

}  // namespace trireme::launch
