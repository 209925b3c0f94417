// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/launcher_environment.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace trireme::runtime {
namespace {

using base::Environment;

constexpr int most_local_ranks = 4096;

template <typename Number>
std::optional<Number> count_in(std::string_view text) {
  const auto number = base::number_in<Number>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// Number in the variable; none where it is missing or no number.
std::optional<int> number(const Environment& environment, std::string_view variable) {
  const auto text = environment.get(variable);
  return text ? count_in<int>(*text) : std::nullopt;
}

/// A failure where the variable is no number.
base::Result<std::optional<int>> checked_number(const Environment& environment,
                                                const char* variable) {
  const auto text = environment.get(variable);
  if (!text) return std::optional<int>{};
  if (const auto value = count_in<int>(*text)) return value;
  return base::Failure{base::ExitCode::launch,
                       base::format("{}={} is no number of tasks or ranks (the launcher sets "
                                    "it); unset it, or start through the launcher",
                                    variable, *text)};
}

struct Signs {
  Launcher launcher;
  /// Present only when this launcher started the process.
  const char* presence;
  const char* tasks;
  const char* rank;
};

/// The innermost launcher first: mpirun inside a Slurm step is mpirun. A batch script has
/// SLURM_NTASKS and SLURM_PROCID too, but only srun sets the size of a step.
constexpr Signs known_launchers[] = {
    {Launcher::mpirun, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {Launcher::srun, "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {Launcher::process_manager, "PMI_SIZE", "PMI_SIZE", "PMI_RANK"},
    {Launcher::process_manager, "PMIX_RANK", nullptr, "PMIX_RANK"},
};

/// Null for a plain process.
const Signs* signs_in(const Environment& environment) {
  const auto* const found =
      std::find_if(std::begin(known_launchers), std::end(known_launchers),
                   [&](const Signs& signs) { return environment.has(signs.presence); });
  return found == std::end(known_launchers) ? nullptr : found;
}

/// The node's entry in Slurm's "2(x3),1": two tasks on each of the first three nodes, one on the
/// fourth.
std::optional<int> tasks_of_node(std::string_view text, int node) {
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    const auto open = part.find("(x");
    const auto tasks = count_in<int>(part.substr(0, open));
    int repeats = 1;
    if (open != std::string_view::npos) {
      if (!part.ends_with(')')) return std::nullopt;
      const auto count = count_in<int>(part.substr(open + 2, part.size() - open - 3));
      if (!count) return std::nullopt;
      repeats = *count;
    }
    if (!tasks) return std::nullopt;
    if (node < repeats) return tasks;
    node -= repeats;
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return std::nullopt;
}

std::optional<NodeShare> checked(std::optional<int> local_rank, std::optional<int> local_ranks,
                                 std::optional<int> all) {
  if (!local_rank || !local_ranks || !all || *local_rank >= *local_ranks ||
      *local_ranks > most_local_ranks) {
    return std::nullopt;
  }
  return NodeShare{*local_rank, *local_ranks, *all > *local_ranks};
}

}  // namespace

const char* name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "no launcher";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::srun:
      return "srun";
    case Launcher::process_manager:
      return "a process manager";
  }
  return "?";
}

base::Result<Identity> identify(const Environment& environment) {
  Identity identity;
  if (const auto job = environment.get("SLURM_JOB_ID")) {
    identity.job = *job;
    if (const auto step = environment.get("SLURM_STEP_ID")) identity.job += "." + *step;
  }
  const auto* const signs = signs_in(environment);
  if (signs == nullptr) return identity;
  identity.launcher = signs->launcher;
  if (signs->tasks != nullptr) {
    const auto tasks = checked_number(environment, signs->tasks);
    if (!tasks.ok()) return tasks.failure();
    identity.announced_tasks = *tasks;
  }
  const auto rank = checked_number(environment, signs->rank);
  if (!rank.ok()) return rank.failure();
  identity.announced_rank = *rank;
  return identity;
}

std::optional<NodeShare> announced_share(const Environment& environment) {
  const auto* const signs = signs_in(environment);
  if (signs != nullptr && signs->launcher == Launcher::mpirun) {
    return checked(number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
                   number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"),
                   number(environment, "OMPI_COMM_WORLD_SIZE"));
  }
  const auto node = number(environment, "SLURM_NODEID");
  const auto tasks = environment.get("SLURM_STEP_TASKS_PER_NODE");
  if (!node || !tasks) return std::nullopt;
  return checked(number(environment, "SLURM_LOCALID"), tasks_of_node(*tasks, *node),
                 number(environment, "SLURM_STEP_NUM_TASKS"));
}

layout::NetworkPath switches_above(const base::Environment& environment) {
  const auto address = environment.get("SLURM_TOPOLOGY_ADDR");
  const auto pattern = environment.get("SLURM_TOPOLOGY_ADDR_PATTERN");
  if (!address || !pattern) return {};
  const auto names = base::split(*address, '.');
  const auto kinds = base::split(*pattern, '.');
  // Ambiguous: a switch or node has a dot in its name.
  if (names.empty() || names.size() != kinds.size() || kinds.back() != "node") return {};
  if (std::any_of(kinds.begin(), kinds.end() - 1,
                  [](std::string_view kind) { return kind != "switch"; })) {
    return {};
  }
  return {names.begin(), names.end() - 1};
}

std::optional<std::string> job_number(const Environment& environment) {
  const auto job = environment.get("SLURM_JOB_ID");
  if (!job || job->empty() || job->find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::string(*job);
}

std::optional<std::uint32_t> step_number(const Environment& environment) {
  const auto step = environment.get("SLURM_STEP_ID");
  if (!step) return std::nullopt;
  const auto number = count_in<std::int64_t>(*step);
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (!number || *number > most) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::optional<std::int64_t> job_end(const Environment& environment) {
  const auto end = environment.get("SLURM_JOB_END_TIME");
  return end ? count_in<std::int64_t>(*end) : std::nullopt;
}

bool dealt_by_hand(const Environment& environment) {
  const auto dealt = environment.get("SLURM_DISTRIBUTION").value_or("");
  return !dealt.empty() && dealt != "block";
}

}  // namespace trireme::runtime
