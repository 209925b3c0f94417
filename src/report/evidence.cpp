// SPDX-License-Identifier: Apache-2.0
#include "evidence.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace trireme::report {
namespace {

constexpr std::size_t most_positions = 4096;
constexpr int most_layers = 1 << 20;

std::vector<int> layers_of(const base::Json& line) {
  const auto found = line.find("stage_layers");
  if (found == line.end() || !found->is_array() || found->size() > most_positions) return {};
  std::vector<int> layers;
  for (const auto& each : *found) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() > most_layers) return {};
    layers.push_back(each.get<int>());
  }
  return layers;
}

/// The first position on a stage that no other is before, in this order of their layers.
template <typename Before>
std::size_t position_of(const std::vector<int>& layers, std::size_t stage,
                        const layout::Placement& placement, Before before) {
  const auto at = [&](int chunk) {
    return static_cast<std::size_t>(placement.position_of({static_cast<int>(stage), chunk}));
  };
  auto found = at(0);
  for (int chunk = 1; chunk < placement.virtual_stages; ++chunk) {
    if (before(layers[at(chunk)], layers[found])) found = at(chunk);
  }
  return found;
}

}  // namespace

StepFacts step_facts(const RunView& run) {
  const auto& events = run.record.events;
  const auto start = std::find_if(events.rbegin(), events.rend(),
                                  [](const auto& event) { return event.name == "start"; });
  if (start == events.rend()) return {};
  return {telemetry::number_of(start->line, "tokens_per_step"),
          telemetry::number_of(start->line, "tensor_bytes"),
          telemetry::number_of(start->line, "message_bytes"),
          telemetry::number_of(start->line, "gradient_bytes"), layers_of(start->line)};
}

bool is_within_nodes(const RunView& run, layout::Axis axis) {
  if (!run.placement) return false;
  const auto& [mesh, ranks] = *run.placement;
  if (ranks.empty() || std::cmp_not_equal(ranks.size(), mesh.world_size())) return false;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const auto first = mesh.moved(base::Rank(static_cast<int>(at)), axis, 0);
    if (ranks[at].node != ranks[static_cast<std::size_t>(first.value())].node) return false;
  }
  return true;
}

std::string_view engines_of(const RunView& run) {
  if (!run.placement) return "processors or GPUs";
  const auto& ranks = run.placement->ranks;
  return std::any_of(ranks.begin(), ranks.end(), [](const auto& rank) { return !rank.gpu.empty(); })
             ? "GPUs"
             : "processors";
}

std::string rate_text(double bytes, double milliseconds) {
  const double per_second = bytes / milliseconds * 1e3;
  if (per_second >= 1e8) return base::format("{:.2f} GB/s", per_second / 1e9);
  return base::format("{:.3g} MB/s", per_second / 1e6);
}

std::string traffic_text(double bytes, double milliseconds) {
  if (!(bytes > 0) || !(milliseconds > 0)) return {};
  return base::format(": {} a step at {}", base::bytes_text(static_cast<std::uint64_t>(bytes)),
                      rate_text(bytes, milliseconds));
}

std::string hindered_text(std::span<const telemetry::ProcessorsLine> lines, double least_share) {
  std::vector<telemetry::CoresUse> hindered;
  double seconds = 0;
  double all_seconds = 0;
  for (const auto& line : lines) {
    all_seconds += line.use.seconds;
    if (telemetry::hindrance_of(line.use) == telemetry::Hindrance::none) continue;
    seconds += line.use.seconds;
    hindered.push_back(line.use);
  }
  if (!(seconds > 0) || seconds < least_share * all_seconds) return {};
  const auto middle = hindered.begin() + static_cast<std::ptrdiff_t>(hindered.size() / 2);
  std::nth_element(hindered.begin(), middle, hindered.end(),
                   [](const auto& one, const auto& other) {
                     return telemetry::hindered_share(one) < telemetry::hindered_share(other);
                   });
  return base::format("{} ({:.0f} % of the measured time was like that): {}",
                      telemetry::hindrance_text(*middle), 100 * seconds / all_seconds,
                      telemetry::hindrance_remedy(telemetry::hindrance_of(*middle)));
}

std::string move_text(const StepFacts& facts, std::size_t busiest, std::size_t idlest,
                      double difference, double layer_share, const layout::Placement& placement) {
  auto layers = facts.stage_layers;
  if (layers.empty() || std::cmp_not_equal(layers.size(), placement.positions()) ||
      layer_share <= 0) {
    return base::format("move a layer away from stage {} (parallel.stage_layers)", busiest);
  }
  // The fullest position gives, the emptiest takes.
  const auto from = position_of(layers, busiest, placement, std::greater<>());
  const auto to = position_of(layers, idlest, placement, std::less<>());
  if (layers[from] < 2) {
    return base::format(
        "and no layer to give (parallel.stage_layers = {}): lower "
        "parallel.pipeline",
        base::join(layers, ","));
  }
  // One layer moved changes the difference by two.
  const auto wanted = static_cast<int>(std::lround(difference / (2 * layer_share)));
  const int count = std::clamp(wanted, 1, layers[from] - 1);
  layers[from] -= count;
  layers[to] += count;
  return base::format("move {} from stage {} to stage {} (parallel.stage_layers = {})",
                      base::counted(count, "layer"), busiest, idlest, base::join(layers, ","));
}

}  // namespace trireme::report
