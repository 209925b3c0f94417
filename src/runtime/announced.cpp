// What launchers announce in a task's environment about its place: texts of Slurm and Open MPI.
#include "trireme/base/text.hpp"
#include "trireme/runtime/network_exports.hpp"
#include "trireme/runtime/rank_order.hpp"

#include <algorithm>
#include <charconv>

namespace trireme::runtime {
namespace {

using base::Environment;

constexpr int most_local_ranks = 4096;

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

std::optional<int> number(const Environment& environment, std::string_view variable) {
  const auto text = environment.get(variable);
  return text ? number_in(*text) : std::nullopt;
}

/// The node's entry in Slurm's "2(x3),1": two tasks on each of the first three nodes, one on the
/// fourth.
std::optional<int> tasks_of_node(std::string_view text, int node) {
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    const auto open = part.find("(x");
    const auto tasks = number_in(part.substr(0, open));
    int repeats = 1;
    if (open != std::string_view::npos) {
      if (!part.ends_with(')')) return std::nullopt;
      const auto count = number_in(part.substr(open + 2, part.size() - open - 3));
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

std::optional<NodeShare> announced_share(const Environment& environment) {
  // The innermost launcher first: mpirun inside a Slurm job is mpirun.
  if (environment.has("OMPI_COMM_WORLD_SIZE")) {
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
  // A switch or node with a dot in its name: which part is what cannot be told.
  if (names.empty() || names.size() != kinds.size() || kinds.back() != "node") return {};
  if (std::any_of(kinds.begin(), kinds.end() - 1,
                  [](std::string_view kind) { return kind != "switch"; })) {
    return {};
  }
  return {names.begin(), names.end() - 1};
}

}  // namespace trireme::runtime
