// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/launch/validation.hpp"

#include "key_settings.hpp"
#include "text.hpp"

namespace trireme::launch {
namespace {

using base::format;

/// A time limit that the lead of `auto` fills. Without a setting the configuration may have another
/// lead, and the command may be none that trains.
std::optional<std::string> time_advice(const Contract& contract, const ResourceRequest& request) {
  const auto limit = request.time_limit_seconds;
  if (!limit || *limit > shortest_automatic_lead_seconds) return std::nullopt;
  if (setting_of(contract, lead_key) != nullptr) return std::nullopt;
  return format(
      "the time limit of {} is no longer than run.signal_lead = auto, at least {} (train would "
      "stop before its first step); ask for more time, or give --trireme-signal-lead=SECONDS",
      base::duration_text(*limit), base::duration_text(shortest_automatic_lead_seconds));
}

/// Limit of a small allotment: program, MPI and the smallest models fit into it, models that people
/// train do not.
constexpr std::int64_t little_memory_mib = 1024;

/// Option from which memory_of_a_task() has the number.
std::string memory_option(const ResourceRequest& request) {
  if (request.cpu_memory) return format("--mem-per-cpu={}M", *request.cpu_memory);
  if (request.node_memory) return format("--mem={}M", *request.node_memory);
  return format("--mem-per-gpu={}M", request.gpu_memory.value_or(0));
}

/// Slurm's default memory is often that of one core, and the step is killed only once it computes.
std::optional<std::string> memory_advice(const ResourceRequest& request) {
  const auto memory = memory_of_a_task(request);
  if (!memory || *memory >= little_memory_mib) return std::nullopt;
  return format(
      "{} leaves {} MiB for each rank (Slurm kills the step when it takes more); ask for more, for "
      "example --mem=0 for all of a node: trireme plan CONFIG --ranks N tells what a rank needs",
      memory_option(request), *memory);
}

}  // namespace

std::vector<std::string> advice(const Contract& contract, const ResourceRequest& request,
                                const StepDefaults& defaults) {
  std::vector<std::string> texts;
  if (!contract.active() || request.quiet) return texts;
  const auto tasks = task_count(request);
  const bool many = !tasks || *tasks > 1;
  if (request.command == Command::srun && many) {
    const auto& mpi = request.mpi.empty() ? defaults.default_mpi : request.mpi;
    if (!mpi.empty() && !mpi.starts_with("pmix")) {
      texts.push_back(format("{} (every task would see a world of one); use --mpi=pmix",
                             request.mpi.empty() ? "srun starts without a PMIx, which is not this "
                                                   "site's default"
                                                 : "--mpi=" + shown(mpi) + " is no PMIx"));
    }
    if (!request.kill_on_bad_exit && !request.waits) {
      texts.emplace_back(
          "without --wait=10 a rank that dies while MPI starts leaves the others waiting (srun "
          "does not end them); add it, or export SLURM_WAIT=10");
    }
  }
  if (request.command == Command::srun && !defaults.job_cpus_per_task.empty() &&
      !request.cpus_per_task) {
    texts.emplace_back(
        format("the job's --cpus-per-task={0} does not reach this step (srun ignores "
               "SLURM_CPUS_PER_TASK since Slurm 22.05); add --cpus-per-task={0}, or "
               "export SRUN_CPUS_PER_TASK={0}",
               shown(defaults.job_cpus_per_task)));
  }
  if (contract.number("tensor-parallel").value_or(1) > 1 && request.nodes.value_or(1) > 1 &&
      request.tasks && !request.tasks_per_node) {
    texts.emplace_back(
        "Slurm may put unequal numbers of tasks on the nodes (tensor-parallel ranks would lie on "
        "two of them); add --ntasks-per-node");
  }
  const bool bound_gpus = request.gpu_bind.find("single") != std::string::npos ||
                          request.gpu_bind.find("per_task") != std::string::npos ||
                          request.gpu_bind.find("map_gpu") != std::string::npos;
  if (request.gpus_per_task || request.tasks_per_gpu || bound_gpus) {
    texts.emplace_back(
        "GPUs are given to single tasks (ranks of a node then cannot reach each other's memory); "
        "use --gpus-per-node alone, each rank takes its own");
  }
  if (auto text = memory_advice(request)) texts.push_back(*std::move(text));
  if (auto text = time_advice(contract, request)) texts.push_back(*std::move(text));
  if (!request.in_allocation && !request.no_kill && request.nodes.value_or(1) > 1) {
    texts.emplace_back(
        "without --no-kill the loss of one node ends the whole job (nothing is left to say why, or "
        "to requeue it); add --no-kill");
  }
  return texts;
}

}  // namespace trireme::launch
